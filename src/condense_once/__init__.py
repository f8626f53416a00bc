"""One condensed dataset in, any smaller one out, without condensing again.

>>> import condense_once
>>> small = condense_once.resize("cifar10-idc-ipc10", ipc=1)
>>> small.patches().shape, small.counts().tolist()
((40, 3, 32, 32), [4, 4, 4, 4, 4, 4, 4, 4, 4, 4])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condense_once._version import __version__ as __version__
from condense_once.lazy import lazy_names

if TYPE_CHECKING:
    from condense_once.condensed.accuracy_curve import AccuracyCurve as AccuracyCurve
    from condense_once.condensed.budget import Budget as Budget
    from condense_once.condensed.bundled import SETS as SETS
    from condense_once.condensed.bundled import load as load
    from condense_once.condensed.contact_sheet import contact_sheet as contact_sheet
    from condense_once.condensed.coreset import coreset as coreset
    from condense_once.condensed.exporters import EXPORTERS as EXPORTERS
    from condense_once.condensed.exporters import export_set as export_set
    from condense_once.condensed.file import save as save
    from condense_once.condensed.hub import pull_from_hub as pull_from_hub
    from condense_once.condensed.hub import push_to_hub as push_to_hub
    from condense_once.condensed.importers import FORMATS as FORMATS
    from condense_once.condensed.importers import ImportOptions as ImportOptions
    from condense_once.condensed.importers import import_set as import_set
    from condense_once.condensed.set import CondensedSet as CondensedSet
    from condense_once.condensed.set import Patch as Patch
    from condense_once.condensed.set import Ranking as Ranking
    from condense_once.condensed.space import Space as Space
    from condense_once.condensed.subset import resize as resize
    from condense_once.condensed.verify import Finding as Finding
    from condense_once.condensed.verify import verify as verify
    from condense_once.condensing import CONDENSERS as CONDENSERS
    from condense_once.condensing import PRESETS as PRESETS
    from condense_once.condensing.callbacks import Callback as Callback
    from condense_once.condensing.callbacks import ContactSheet as ContactSheet
    from condense_once.condensing.callbacks import HeldOutAccuracy as HeldOutAccuracy
    from condense_once.condensing.callbacks import RunProgress as RunProgress
    from condense_once.condensing.callbacks import TensorBoard as TensorBoard
    from condense_once.condensing.condenser import CondenseEstimate as CondenseEstimate
    from condense_once.condensing.condenser import Condenser as Condenser
    from condense_once.condensing.condenser import Task as Task
    from condense_once.condensing.config import CondenseConfig as CondenseConfig
    from condense_once.condensing.experts import Experts as Experts
    from condense_once.condensing.experts import train_experts as train_experts
    from condense_once.condensing.refine import refine as refine
    from condense_once.condensing.registry import CondenserInfo as CondenserInfo
    from condense_once.condensing.registry import Preset as Preset
    from condense_once.condensing.runner import condense as condense
    from condense_once.condensing.slim import slim as slim
    from condense_once.condensing.stop_signals import Interrupted as Interrupted
    from condense_once.data.catalogue import SOURCES as SOURCES
    from condense_once.data.open import open_source as open_source
    from condense_once.data.source import ArraySplit as ArraySplit
    from condense_once.data.source import Source as Source
    from condense_once.data.source import SourceInfo as SourceInfo
    from condense_once.errors import BadFile as BadFile
    from condense_once.errors import BadOption as BadOption
    from condense_once.errors import CondenseOnceError as CondenseOnceError
    from condense_once.errors import InaccessibleFile as InaccessibleFile
    from condense_once.errors import MissingExtra as MissingExtra
    from condense_once.errors import MissingFile as MissingFile
    from condense_once.errors import UnknownName as UnknownName
    from condense_once.evaluation.curve import measure_curve as measure_curve
    from condense_once.evaluation.evaluate import evaluate as evaluate
    from condense_once.evaluation.protocols import PROTOCOLS as PROTOCOLS
    from condense_once.evaluation.protocols import Protocol as Protocol
    from condense_once.evaluation.result import EvaluationRun as EvaluationRun
    from condense_once.evaluation.result import Result as Result
    from condense_once.evaluation.robust import RobustScores as RobustScores
    from condense_once.evaluation.robust import robust_scores as robust_scores
    from condense_once.explorer.report import Report as Report
    from condense_once.explorer.report import report as report
    from condense_once.metrics import METRICS as METRICS
    from condense_once.metrics.config import MetricConfig as MetricConfig
    from condense_once.metrics.epochs import Epochs as Epochs
    from condense_once.metrics.registry import MetricInfo as MetricInfo
    from condense_once.metrics.score import score as score
    from condense_once.metrics.score import score_source as score_source
    from condense_once.metrics.scoring_run import ScoringRun as ScoringRun
    from condense_once.nets.registry import NETS as NETS
    from condense_once.nets.registry import NetInfo as NetInfo
    from condense_once.selection.compare import Comparison as Comparison
    from condense_once.selection.compare import Overlap as Overlap
    from condense_once.selection.compare import compare as compare
    from condense_once.selection.compare import compare_rules as compare_rules
    from condense_once.selection.rank import rank as rank
    from condense_once.selection.rule import RULES as RULES
    from condense_once.selection.rule import Rule as Rule
    from condense_once.selection.rule import RuleInfo as RuleInfo
    from condense_once.selection.select import select as select
    from condense_once.selection.selectors import SELECTORS as SELECTORS
    from condense_once.selection.selectors import SelectorInfo as SelectorInfo
    from condense_once.studies import STUDIES as STUDIES
    from condense_once.studies.progress import StudyProgress as StudyProgress
    from condense_once.studies.result import StudyResult as StudyResult
    from condense_once.studies.run import run_study as run_study
    from condense_once.studies.study import Study as Study
    from condense_once.train.compute_config import ComputeConfig as ComputeConfig
    from condense_once.train.patch_dataset import PatchDataset as PatchDataset
    from condense_once.train.patch_dataset import train_network as train_network
    from condense_once.train.recipe import Recipe as Recipe

# Where each public name lives. Names are imported on first use, so `import condense_once` costs nothing.
_HOMES = {
    # verbs
    "compare": "selection.compare",
    "compare_rules": "selection.compare",
    "condense": "condensing.runner",
    "contact_sheet": "condensed.contact_sheet",
    "coreset": "condensed.coreset",
    "evaluate": "evaluation.evaluate",
    "export_set": "condensed.exporters",
    "import_set": "condensed.importers",
    "load": "condensed.bundled",
    "measure_curve": "evaluation.curve",
    "open_source": "data.open",
    "pull_from_hub": "condensed.hub",
    "push_to_hub": "condensed.hub",
    "rank": "selection.rank",
    "refine": "condensing.refine",
    "report": "explorer.report",
    "resize": "condensed.subset",
    "robust_scores": "evaluation.robust",
    "run_study": "studies.run",
    "save": "condensed.file",
    "score": "metrics.score",
    "score_source": "metrics.score",
    "select": "selection.select",
    "slim": "condensing.slim",
    "train_experts": "condensing.experts",
    "train_network": "train.patch_dataset",
    "verify": "condensed.verify",
    # types
    "ArraySplit": "data.source",
    "BadFile": "errors",
    "BadOption": "errors",
    "AccuracyCurve": "condensed.accuracy_curve",
    "Budget": "condensed.budget",
    "Callback": "condensing.callbacks",
    "Comparison": "selection.compare",
    "ComputeConfig": "train.compute_config",
    "CondenseConfig": "condensing.config",
    "CondenseEstimate": "condensing.condenser",
    "CondenseOnceError": "errors",
    "CondensedSet": "condensed.set",
    "Condenser": "condensing.condenser",
    "CondenserInfo": "condensing.registry",
    "ContactSheet": "condensing.callbacks",
    "Epochs": "metrics.epochs",
    "EvaluationRun": "evaluation.result",
    "Experts": "condensing.experts",
    "Finding": "condensed.verify",
    "HeldOutAccuracy": "condensing.callbacks",
    "ImportOptions": "condensed.importers",
    "InaccessibleFile": "errors",
    "Interrupted": "condensing.stop_signals",
    "MetricConfig": "metrics.config",
    "MetricInfo": "metrics.registry",
    "MissingExtra": "errors",
    "MissingFile": "errors",
    "NetInfo": "nets.registry",
    "Overlap": "selection.compare",
    "Patch": "condensed.set",
    "PatchDataset": "train.patch_dataset",
    "Preset": "condensing.registry",
    "Protocol": "evaluation.protocols",
    "Ranking": "condensed.set",
    "Recipe": "train.recipe",
    "Report": "explorer.report",
    "Result": "evaluation.result",
    "RobustScores": "evaluation.robust",
    "Rule": "selection.rule",
    "RuleInfo": "selection.rule",
    "RunProgress": "condensing.callbacks",
    "ScoringRun": "metrics.scoring_run",
    "SelectorInfo": "selection.selectors",
    "Source": "data.source",
    "SourceInfo": "data.source",
    "Space": "condensed.space",
    "Study": "studies.study",
    "StudyProgress": "studies.progress",
    "StudyResult": "studies.result",
    "Task": "condensing.condenser",
    "TensorBoard": "condensing.callbacks",
    "UnknownName": "errors",
    # registries
    "CONDENSERS": "condensing",
    "EXPORTERS": "condensed.exporters",
    "FORMATS": "condensed.importers",
    "METRICS": "metrics",
    "NETS": "nets.registry",
    "PRESETS": "condensing",
    "PROTOCOLS": "evaluation.protocols",
    "RULES": "selection.rule",
    "SELECTORS": "selection.selectors",
    "SETS": "condensed.bundled",
    "SOURCES": "data.catalogue",
    "STUDIES": "studies",
}
__all__ = [*_HOMES]
__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return [*_HOMES, "__version__"]
