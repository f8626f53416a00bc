// The patches of a set in a notebook: those that a smaller set leaves out are faded.

const SIDE = 24;
const FADED = 0.13;

const byId = (id) => document.getElementById(id);
const set = JSON.parse(byId("data").textContent);
const { columns, width, height, pad } = set.sprite;
const image = byId("sprite");
const slider = byId("slider");

const strips = set.classes.map((name, label) => {
  const places = set.labels.flatMap((each, place) => (each === label ? [place] : []));
  const [row, text, canvas] = ["div", "span", "canvas"].map((tag) => document.createElement(tag));
  row.className = "row";
  text.textContent = name;
  text.title = name;
  canvas.width = places.length * SIDE;
  canvas.height = SIDE;
  canvas.setAttribute("role", "img");
  row.append(text, canvas);
  byId("rows").append(row);
  return { name, places, canvas };
});

function draw() {
  const kept = set.ranked ? Math.min(set.patches, Number(slider.value) * set.step) : set.patches;
  byId("kept").textContent = `${kept} of ${set.patches} patches`;
  for (const { name, places, canvas } of strips) {
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    places.forEach((place, i) => {
      context.globalAlpha = set.rows[place] < kept ? 1 : FADED;
      const left = (place % columns) * (width + 2 * pad) + pad;
      const top = Math.floor(place / columns) * (height + 2 * pad) + pad;
      context.drawImage(image, left, top, width, height, i * SIDE, 0, SIDE - 1, SIDE - 1);
    });
    canvas.setAttribute("aria-label", `${name}: ${places.filter((place) => set.rows[place] < kept).length} of ${places.length} shown patches kept`);
  }
}

byId("title").textContent = set.title;
slider.min = 1;
slider.max = Math.ceil(set.patches / set.step);
slider.value = slider.max;
byId("control").hidden = !set.ranked;
slider.addEventListener("input", draw);
image.decode().then(draw);
