// The sheet of all patches, how to draw one of them, and how to draw very many.

const MOST_PIXELS = 12_000_000; // of all thumbnails

/** A function that draws a patch; the image is decoded once. */
export async function loadSprite(image, { columns, width, height, pad }) {
  await image.decode();
  const sheet = document.createElement("canvas");
  sheet.width = image.naturalWidth;
  sheet.height = image.naturalHeight;
  sheet.getContext("2d").drawImage(image, 0, 0);
  const [pitchX, pitchY] = [width + 2 * pad, height + 2 * pad];
  return {
    aspect: width / height,
    draw(context, row, x, y, wide, high) {
      const left = (row % columns) * pitchX + pad;
      const top = Math.floor(row / columns) * pitchY + pad;
      context.drawImage(sheet, left, top, width, height, x, y, wide, high);
    },
    /** All patches as thumbnails of so many pixels, to be copied by `copyThumbnail`; null if that would be too many. */
    thumbnails(wide, high) {
      const rows = Math.round(sheet.height / pitchY);
      if (columns * rows * wide * high > MOST_PIXELS) return null;
      const small = document.createElement("canvas");
      [small.width, small.height] = [columns * wide, rows * high];
      const context = small.getContext("2d", { willReadFrequently: true });
      context.imageSmoothingQuality = "medium";
      context.drawImage(sheet, 0, 0, small.width, small.height);
      const pixels = new Uint32Array(context.getImageData(0, 0, small.width, small.height).data.buffer);
      return { pixels, columns, wide, high, stride: small.width };
    },
  };
}

/** Copy a thumbnail into the pixels of an image `width` wide; `mask` fades it by leaving it less of its alpha. */
export function copyThumbnail(thumbnails, row, target, width, height, left, top, mask) {
  const { pixels, columns, wide, high, stride } = thumbnails;
  const [fromX, toX] = [Math.max(0, -left), Math.min(wide, width - left)];
  const [fromY, toY] = [Math.max(0, -top), Math.min(high, height - top)];
  const start = Math.floor(row / columns) * high * stride + (row % columns) * wide;
  for (let y = fromY; y < toY; y += 1) {
    let from = start + y * stride + fromX;
    let to = (top + y) * width + left + fromX;
    for (let x = fromX; x < toX; x += 1) target[to++] = pixels[from++] & mask;
  }
}
