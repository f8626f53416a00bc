// The sheet of all patches, and how to draw one of them.

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
  };
}
