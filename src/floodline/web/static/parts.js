// The few ways in which this page creates elements. All text goes through textContent.

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function show(element, wanted) {
  if (element.hidden === wanted) element.hidden = !wanted;
}

// Rows that keep their elements while their figures change, so that a selection or the position of
// a screen reader is not lost with every tick.
export function keyed(parent, key, create, update) {
  const known = new Map();
  return (items) => {
    const seen = new Set();
    items.forEach((item, index) => {
      let name = key(item);
      while (seen.has(name)) name += "'";
      seen.add(name);
      let element = known.get(name);
      if (!element) known.set(name, element = create(item));
      update(element, item);
      if (parent.children[index] !== element) parent.insertBefore(element, parent.children[index] || null);
    });
    for (const [name, element] of known) {
      if (!seen.has(name)) {
        element.remove();
        known.delete(name);
      }
    }
  };
}

// columns: {label, number, first, fill(cell, item)}
export function table(element, key, columns) {
  const head = make("tr", { role: "row" }, ...columns.map((column) =>
    make("th", { scope: "col", role: "columnheader", class: column.number ? "number" : null }, column.label)));
  const body = make("tbody", { role: "rowgroup" });
  element.append(make("thead", { role: "rowgroup" }, head), body);
  const create = () => make("tr", { role: "row" }, ...columns.map((column) => make("td", {
    role: "cell",
    "data-label": column.label,
    class: [column.number && "number", column.first && "first"].filter(Boolean).join(" ") || null,
  }, make("div"))));
  const update = keyed(body, key, create, (row, item) =>
    columns.forEach((column, index) => column.fill(row.children[index].firstChild, item)));
  return (items) => {
    show(element, items.length > 0);
    update(items);
  };
}

// A column whose cell is one text, with a smaller second line if there is one.
export function words(label, text, { number, first, small, className, hover } = {}) {
  return {
    label, number, first,
    fill(cell, item) {
      if (!cell.firstChild) {
        cell.append(make("span", { class: className }), make("small"));
      }
      const below = small ? small(item) : "";
      say(cell.firstChild, text(item));
      if (hover) cell.firstChild.title = hover(item);
      say(cell.lastChild, below);
      show(cell.lastChild, below !== "");
    },
  };
}

export function mark(label, text) {
  return {
    label,
    fill(cell, item) {
      if (!cell.firstChild) cell.append(make("span", { class: "state" }));
      cell.firstChild.dataset.state = text(item);
      say(cell.firstChild, text(item));
    },
  };
}
