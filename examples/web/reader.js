// Read a condensed set from a web server by range requests (docs/format.md, version 1, raw cells): no dependencies.

const HEAD = 65536; // bytes of the first request: the header of most sets
const MAX_HEADER = 16777216;
const MAX_BLOCK = 4194304;
const SIZES = { U8: 1, U16: 2, U32: 4, F16: 2, F32: 4 };

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k += 1) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});

/** CRC-32 as in zlib and PNG, as eight hex digits. */
export function crc32(bytes) {
  let c = 0xffffffff;
  for (const byte of bytes) c = CRC_TABLE[(c ^ byte) & 255] ^ (c >>> 8);
  return ((c ^ 0xffffffff) >>> 0).toString(16).padStart(8, "0");
}

function check(condition, message) {
  if (!condition) throw new Error(message);
}

/** The bytes [start, stop) of a file, or up to its end; and its size. */
async function fetchRange(url, start, stop) {
  const response = await fetch(url, { headers: { Range: `bytes=${start}-${stop - 1}` }, cache: "no-store" });
  check(response.status === 206, `${url}: the server answered ${response.status}, not a part of the file; it must support range requests.`);
  const range = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "");
  check(range && Number(range[1]) === start, `${url}: the server sent other bytes than requested.`);
  const bytes = new Uint8Array(await response.arrayBuffer());
  const size = Number(range[3]);
  check(bytes.length === Math.min(stop, size) - start, `${url}: the connection was lost; try again.`);
  return { bytes, size };
}

/** Upsample one channel of h × w to height × width, bilinear as in section 5 of the format. */
export function upsample(values, [h, w], [height, width]) {
  const axis = (i, n, m) => {
    const p = Math.max(0, ((i + 0.5) * m) / n - 0.5);
    const k = Math.floor(p);
    return [k, Math.min(k + 1, m - 1), p - k];
  };
  const found = new Float32Array(height * width);
  for (let y = 0; y < height; y += 1) {
    const [top, bottom, v] = axis(y, height, h);
    for (let x = 0; x < width; x += 1) {
      const [left, right, u] = axis(x, width, w);
      const row = (r) => (1 - u) * values[r * w + left] + u * values[r * w + right];
      found[y * width + x] = (1 - v) * row(top) + v * row(bottom);
    }
  }
  return found;
}

function isTensor(entry, bytes) {
  if (!entry || !(entry.dtype in SIZES) || !Array.isArray(entry.shape)) return false;
  const [start, stop] = entry.data_offsets ?? [];
  const length = entry.shape.reduce((a, b) => a * b, SIZES[entry.dtype]);
  return Number.isSafeInteger(start) && start >= 0 && stop - start === length && stop <= bytes;
}

export class RemoteSet {
  /** Open a set; only its header is fetched. */
  static async open(url) {
    const { bytes: head, size } = await fetchRange(url, 0, HEAD);
    check(head.length >= 8, `${url} is not a condensed set.`);
    const length = Number(new DataView(head.buffer).getBigUint64(0, true));
    check(length <= MAX_HEADER && 8 + length <= size, `${url} is not a condensed set, or is damaged.`);
    let bytes = head;
    if (bytes.length < 8 + length) bytes = (await fetchRange(url, 0, 8 + length)).bytes;
    const outer = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(8, 8 + length)));
    const text = outer.__metadata__?.condense_once;
    check(typeof text === "string", `${url} is a safetensors file, but not a condensed set.`);
    check(crc32(new TextEncoder().encode(text)) === outer.__metadata__["condense_once.crc32"], `${url}: the header is damaged.`);
    const header = JSON.parse(text);
    check(header.format === "condense-once" && header.version === 1 && header.codec === "raw", `${url} needs a newer reader.`);
    return new RemoteSet(url, header, outer, 8 + length, size, bytes.length);
  }

  constructor(url, header, tensors, start, size, fetched) {
    Object.assign(this, { url, header, tensors, start, size, fetched, blocks: new Map() });
    const { patches, image: [channels, height, width], factor, dtype, checksums } = header;
    this.cell = [Math.ceil(height / factor), Math.ceil(width / factor)];
    const shapes = { cells: [dtype, patches, channels, ...this.cell], labels: ["U16", patches] };
    check(checksums.block >= 1 && checksums.block <= MAX_BLOCK, `${url}: blocks are too large.`);
    for (const [name, shape] of Object.entries(shapes)) {
      const entry = tensors[name];
      check(isTensor(entry, size - start), `${url}: tensor ${name} is damaged.`);
      check(String([entry.dtype, ...entry.shape]) === String(shape), `${url}: tensor ${name} has another shape than the header says.`);
      const length = entry.data_offsets[1] - entry.data_offsets[0];
      check(checksums.crc32[name]?.length === 8 * Math.ceil(length / checksums.block), `${url}: the checksums of ${name} are damaged.`);
    }
  }

  /** The first rows of a tensor as bytes; fetches and verifies the blocks that are new. */
  async rows(name, count) {
    const { shape, data_offsets: [from, to] } = this.tensors[name];
    const { block, crc32: sums } = this.header.checksums;
    const rowBytes = (to - from) / shape[0];
    const have = this.blocks.get(name) ?? new Uint8Array();
    const wanted = Math.min(Math.ceil((count * rowBytes) / block) * block, to - from);
    if (wanted > have.length) {
      const { bytes } = await fetchRange(this.url, this.start + from + have.length, this.start + from + wanted);
      this.fetched += bytes.length;
      for (let at = 0; at < bytes.length; at += block) {
        const index = (have.length + at) / block;
        check(crc32(bytes.subarray(at, at + block)) === sums[name].slice(8 * index, 8 * index + 8), `${this.url}: block ${index} of ${name} is damaged.`);
      }
      const all = new Uint8Array(wanted);
      all.set(have);
      all.set(bytes, have.length);
      this.blocks.set(name, all);
    }
    return this.blocks.get(name).slice(0, count * rowBytes);
  }

  /** The best `count` patches as {label, image: ImageData}. */
  async take(count) {
    const { image: [channels, height, width], space, dtype } = this.header;
    check(space.kind !== "zca", "A whitened set has no pixels to show.");
    check(dtype !== "F16", "This reader shows 8-bit and 32-bit sets.");
    const labels = new Uint16Array((await this.rows("labels", count)).buffer);
    const bytes = await this.rows("cells", count);
    const cells = dtype === "F32" ? new Float32Array(bytes.buffer) : bytes;
    const area = this.cell[0] * this.cell[1];
    return Array.from(labels, (label, i) => {
      const image = new ImageData(width, height);
      image.data.fill(255);
      for (let c = 0; c < 3; c += 1) {
        const channel = Math.min(c, channels - 1);
        const values = upsample(cells.subarray((i * channels + channel) * area).subarray(0, area), this.cell, [height, width]);
        values.forEach((v, at) => {
          image.data[4 * at + c] = space.kind === "pixels" ? Math.round(v) : 255 * (v * space.std[channel] + space.mean[channel]);
        });
      }
      return { label, image };
    });
  }
}
