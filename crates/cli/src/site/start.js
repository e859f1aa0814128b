"use strict";
// The page's own lab. Tests and other programs use the page by this name.

const { file = "lab.atm.yml", module: needed = "" } = document.documentElement.dataset;
const aerostat = new LabPage(file, needed);
// The module is a script beside this one, and has come by then.
window.addEventListener("load", () => void aerostat.start());
