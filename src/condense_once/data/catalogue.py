"""Known datasets: class names, image shapes, normalisation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from condense_once.data.source import SOURCES as SOURCES  # registered here: import it from here
from condense_once.data.source import Source, SourceInfo
from condense_once.data.wnids import IMAGENET100_WORDS, IMAGENETTE_WORDS, class_words

_DIGITS = ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)

# Mean and std as in DC, DSA and DM; IDC, DREAM and MTT use those of CIFAR-10 for CIFAR-100, too.
CIFAR10 = SOURCES.add(
    SourceInfo(
        name="cifar10",
        summary="60,000 photos of 10 kinds of animals and vehicles, 32×32",
        classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
        shape=(3, 32, 32),
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2023, 0.1994, 0.2010),
    )
)

CIFAR100 = SOURCES.add(
    SourceInfo(
        name="cifar100",
        summary="60,000 photos of 100 classes (fine labels), 32×32",
        classes=(
            *("apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle"),
            *("bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle"),
            *("chair", "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur"),
            *("dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard"),
            *("lamp", "lawn_mower", "leopard", "lion", "lizard", "lobster", "man", "maple_tree", "motorcycle"),
            *("mountain", "mouse", "mushroom", "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear"),
            *("pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon"),
            *("ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail"),
            *("snake", "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone"),
            *("television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale"),
            *("willow_tree", "wolf", "woman", "worm"),
        ),
        shape=(3, 32, 32),
        mean=(0.5071, 0.4866, 0.4409),
        std=(0.2673, 0.2564, 0.2762),
    )
)

MNIST = SOURCES.add(
    SourceInfo(
        name="mnist",
        summary="70,000 handwritten digits, grey, 28×28",
        classes=_DIGITS,
        shape=(1, 28, 28),
        mean=(0.1307,),
        std=(0.3081,),
    )
)

FASHION_MNIST = SOURCES.add(
    SourceInfo(
        name="fashion-mnist",
        summary="70,000 images of 10 kinds of clothing, grey, 28×28",
        classes=(
            *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
            *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
        ),
        shape=(1, 28, 28),
        mean=(0.2861,),
        std=(0.3530,),
    )
)

SVHN = SOURCES.add(
    SourceInfo(
        name="svhn",
        summary="99,289 photos of house-number digits, 32×32",
        classes=_DIGITS,
        shape=(3, 32, 32),
        mean=(0.4377, 0.4438, 0.4728),
        std=(0.1980, 0.2010, 0.1970),
    )
)

# The first ten of IDC's list of a hundred classes, in its order.
IMAGENET10 = SOURCES.add(
    SourceInfo(
        name="imagenet10",
        summary="the ten classes of ImageNet used by IDC, 224×224",
        classes=tuple(IMAGENET100_WORDS.values())[:10],
        shape=(3, 224, 224),
        mean=_IMAGENET_MEAN,
        std=_IMAGENET_STD,
    )
)

IMAGENETTE = SOURCES.add(
    SourceInfo(
        name="imagenette",
        summary="ten easy classes of ImageNet, 224×224",
        classes=tuple(IMAGENETTE_WORDS.values()),
        shape=(3, 224, 224),
        mean=_IMAGENET_MEAN,
        std=_IMAGENET_STD,
    )
)


def _bundled_sample() -> Source:
    from condense_once.data.webp_zip import load_webp_zip  # here: webp_zip imports this module

    return load_webp_zip(Path(__file__).parent.parent / "bundled" / "cifar10-sample.zip", like=CIFAR10)


SOURCES.add(
    replace(
        CIFAR10,
        name="cifar10-sample",
        summary="1,000 images of the CIFAR-10 test split, 100 per class; bundled",
        load=_bundled_sample,
    )
)


def recognise(classes: tuple[str, ...], channels: int) -> SourceInfo | None:
    """The known dataset with exactly these classes, in any order, as words or ids. Numbers identify no dataset.

    >>> recognise(("truck", *CIFAR10.classes[:-1]), channels=3).name
    'cifar10'
    >>> recognise(MNIST.classes, channels=1)
    """
    return next((info for info in _with_classes(classes) if info.shape[0] == channels), None)


def known_order(classes: tuple[str, ...]) -> tuple[str, ...]:
    """Classes in the order of the known dataset that has exactly these, as words or ids, otherwise unchanged.

    Labels depend on it: IDC numbers the classes of ImageNet-10 in its own order, not alphabetically.

    >>> known_order(tuple(sorted(IMAGENET10.classes))) == IMAGENET10.classes
    True
    >>> known_order(("ant", "bee"))
    ('ant', 'bee')
    """
    name_of = dict(zip(class_words(classes), classes, strict=True))
    return next((tuple(name_of[word] for word in info.classes) for info in _with_classes(classes)), classes)


def _with_classes(classes: tuple[str, ...]) -> Iterator[SourceInfo]:
    if not all(name.isdecimal() for name in classes):
        yield from (info for info in SOURCES if sorted(class_words(info.classes)) == sorted(class_words(classes)))
