// Reads the HTML of a page from a file and prints, for every ranking, unit and stop, the rows that the page keeps.
// Run by test_agreement.py, which compares them with the library.

import { readFileSync } from "node:fs";

import { UNITS, commandFor } from "../../../src/condense_once/explorer/page/budget.js";
import { decodePage } from "../../../src/condense_once/explorer/page/decode.js";
import { createView } from "../../../src/condense_once/explorer/page/view.js";

const html = readFileSync(process.argv[2], "utf-8");
const [, json] = html.match(/<script type="application\/json" id="data">(.*?)<\/script>/s);
const set = decodePage(JSON.parse(json));
const views = createView(set);
const kept = set.rankings.map((_, ranking) =>
  Object.fromEntries(
    Object.keys(UNITS).map((unit) => [
      unit,
      views.stopsFor(ranking, unit).map(({ value, count }, stop) => {
        const view = views.view({ ranking, unit, stop });
        return { value, count, rows: [...view.order.subarray(0, count)], counts: [...view.counts], command: commandFor(unit, { value, count }, view.ranking) };
      }),
    ]),
  ),
);
console.log(JSON.stringify(kept));
