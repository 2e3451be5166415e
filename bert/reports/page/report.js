// Cells of the confusion matrix choose examples. Without this the page shows all of them.
"use strict";
(() => {
  const cells = [...document.querySelectorAll(".matrix [data-cell]")];
  const cases = [...document.querySelectorAll(".case")];
  const status = document.getElementById("filter");
  const further = document.getElementById("further");
  if (!cells.length) return;

  let chosen = null;

  function show(cell) {
    chosen = cell === chosen ? null : cell;
    const name = chosen && chosen.dataset.cell;
    let count = 0;
    for (const each of cases) {
      each.hidden = Boolean(name) && !each.dataset.cells.split(" ").includes(name);
      count += each.hidden ? 0 : 1;
    }
    for (const each of cells) {
      each.firstElementChild.setAttribute("aria-pressed", String(each === chosen));
    }
    if (further) further.open = Boolean(name);
    status.hidden = !name;
    status.replaceChildren();
    if (!name) return;
    const all = document.createElement("button");
    all.type = "button";
    all.textContent = "Show all";
    all.addEventListener("click", () => show(chosen));
    status.append(`${count} shown of ${chosen.dataset.count}: ${chosen.dataset.names}. `, all);
    document.getElementById("cases").scrollIntoView({ block: "start" });
  }

  const table = cells[0].closest("table");
  const columns = [...table.querySelectorAll("thead th")].slice(1).map((each) => each.textContent);
  for (const cell of cells) {
    const gold = cell.closest("tr").querySelector("th").textContent;
    const predicted = columns[Number(cell.dataset.cell.split("-")[1])];
    cell.dataset.count = cell.querySelector("b").textContent;
    cell.dataset.names = `gold “${gold}”, predicted “${predicted}”`;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...cell.childNodes);
    button.disabled = cell.dataset.count === "0";
    button.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-label", `${cell.dataset.names}: ${button.textContent}`);
    button.addEventListener("click", () => show(cell));
    cell.append(button);
  }
  document.getElementById("filter-hint").hidden = false;
})();
