// Numbers and words for people, in the formats of the library's tables.

/** 1234567 → 1,234,567, whatever the language of the browser. */
export function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A size in binary units, as the command line prints it. */
export function humanBytes(count) {
  let size = count;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (size < 1024) return unit === "B" ? `${Math.round(size)} B` : `${size.toFixed(1)} ${unit}`;
    size /= 1024;
  }
  return `${size.toFixed(1)} TiB`;
}

/** A score with four significant digits and no trailing zeros. */
export function scoreText(value) {
  return String(Number(value.toPrecision(4)));
}

/** A mean with its standard deviation, which one run does not have. */
export function meanText(point) {
  return point.runs > 1 ? `${point.mean.toFixed(1)} ± ${point.std.toFixed(1)}` : point.mean.toFixed(1);
}

/** "1 patch", "2 patches", "3 classes". */
export function plural(count, noun) {
  const ending = /(tch|sh|s|x)$/.test(noun) ? "es" : "s";
  return `${grouped(count)} ${noun}${count === 1 ? "" : ending}`;
}

/** 1 → 1st, 2 → 2nd, 11 → 11th. */
export function ordinal(number) {
  const tens = number % 100;
  const ending = tens >= 11 && tens <= 13 ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th");
  return `${grouped(number)}${ending}`;
}

/** Round numbers that divide a range into about `count` parts. */
export function niceTicks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}
