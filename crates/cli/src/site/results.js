"use strict";
// Results of a run: tables, warnings, the document as JSON, and the recorded page in a frame.

/** True for a column that people read first. */
function leads(/** @type {Shown} */ table, /** @type {number} */ column) {
  const importance = table.importance[column];
  return typeof importance !== "object" || !("Detail" in importance);
}

/** A table of results. */
function tableOf(/** @type {Shown} */ table) {
  const shown = table.columns.map((_, column) => column).filter((column) => leads(table, column));
  const made = document.createElement("table");
  const head = made.createTHead().insertRow();
  for (const column of shown) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = table.columns[column];
    head.append(cell);
  }
  const body = made.createTBody();
  for (const row of table.rows) {
    const line = body.insertRow();
    for (const column of shown) {
      const value = row[column];
      const cell = line.insertCell();
      cell.textContent = value === null || value === undefined ? "" : String(value);
      if (typeof value === "number") cell.className = "n";
    }
  }
  return made;
}

/** The results of the last run. */
class Results {
  constructor() {
    /** Addresses of the files, which are given back when others come. @type {string[]} */
    this.addresses = [];
    /** The document of results. */
    this.json = "";
    /** The recorded page. */
    this.page = "";
    part("open-page").addEventListener("click", () => window.open(this.addresses[1], "_blank"));
  }

  /** Takes the results of before away. */
  clear() {
    part("results").hidden = true;
    field("page").removeAttribute("src");
    for (const address of this.addresses) URL.revokeObjectURL(address);
    this.addresses = [];
    this.json = this.page = "";
  }

  /**
   * Shows results.
   * @param {Summary} summary
   * @param {string} json
   * @param {string} page
   */
  show(summary, json, page) {
    this.clear();
    [this.json, this.page] = [json, page];
    const address = (/** @type {string} */ text, /** @type {string} */ type) =>
      URL.createObjectURL(new Blob([text], { type }));
    this.addresses = [address(json, "application/json"), address(page, "text/html")];
    const name = summary.lab.replace(/[^\w.-]/g, "_");
    for (const [id, index, file] of /** @type {const} */ ([
      ["save-json", 0, `${name}.json`],
      ["save-page", 1, `${name}.html`],
    ])) {
      const link = /** @type {HTMLAnchorElement} */ (part(id));
      link.href = this.addresses[index];
      link.download = file;
    }
    const warnings = [...summary.warnings];
    if (summary.hidden > 0)
      warnings.push(`${summary.hidden} machines are not drawn: switches come first, hosts are counted`);
    part("warnings").replaceChildren(
      ...warnings.map((text) => {
        const item = document.createElement("li");
        item.textContent = text;
        return item;
      }),
    );
    const tables = summary.tables.filter((table) => table.rows.length > 0);
    part("tables").replaceChildren(
      ...tables.flatMap((table) => {
        const title = document.createElement("h3");
        title.textContent = table.title;
        return [title, tableOf(table)];
      }),
    );
    /** @type {any} */ (part("page")).src = this.addresses[1];
    part("results").hidden = false;
  }
}
