// A table whose rows are sorted by a click on a column's name; a cell is a number, a text, or {text, href, order}.

function sortableTable({ columns, rows }) {
  const body = element("tbody");
  let [column, descending] = [-1, false];
  const heads = columns.map((name, index) => {
    const button = element("button", { type: "button", class: "sort" }, name);
    button.addEventListener("click", () => {
      [column, descending] = [index, index === column ? !descending : false];
      fill();
    });
    return element("th", { scope: "col", class: isNumeric(rows, index) ? "number" : null }, button);
  });
  const fill = () => {
    const order = column < 0 ? rows : [...rows].sort((left, right) => compareCells(left[column], right[column], descending));
    heads.forEach((head, index) => {
      head.removeAttribute("aria-sort");
      if (index === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    });
    body.replaceChildren(...order.map((row) => element("tr", {}, row.map((cell, index) => cellOf(cell, isNumeric(rows, index))))));
  };
  fill();
  return element("div", { class: "panel scroll" }, element("table", {}, element("thead", {}, element("tr", {}, heads)), body));
}

function isNumeric(rows, index) {
  const known = rows.map((row) => orderOf(row[index])).filter((value) => value !== null);
  return known.length > 0 && known.every((value) => typeof value === "number");
}

function orderOf(cell) {
  if (cell === null || cell === undefined) return null;
  return typeof cell === "object" ? (cell.order ?? cell.text) : cell;
}

// Empty cells are last in either order.
function compareCells(left, right, descending) {
  const [a, b] = [orderOf(left), orderOf(right)];
  if (a === null || b === null) return (a === null) - (b === null);
  const sign = descending ? -1 : 1;
  return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
}

function cellOf(cell, numeric) {
  const names = [numeric ? "number" : "", cell?.shade ?? ""].filter(Boolean).join(" ");
  const kind = { class: names || null };
  if (cell === null || cell === undefined) return element("td", kind, "–");
  if (typeof cell === "number") return element("td", kind, formatNumber(cell));
  if (typeof cell !== "object") return element("td", kind, String(cell));
  const state = cell.state === undefined ? null : element("i", { class: `dot ${cell.state}` });
  const text = cell.href ? element("a", { href: cell.href }, cell.text) : cell.text;
  return element("td", kind, element("span", { class: "state" }, state, text), cell.range ? element("span", { class: "range" }, cell.range) : null);
}
