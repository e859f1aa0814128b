// Runs before everything else, in the syntax of old browsers: says in a sentence why the page does not come to life.
(function () {
  "use strict";
  /** @param {string} text */
  function tell(text) {
    var notice = document.getElementById("notice");
    if (!notice) return;
    notice.textContent = text;
    notice.hidden = false;
  }
  window.addEventListener("load", function () {
    var whole = document.getElementById("end");
    var modern = window.CSS && CSS.supports && CSS.supports("color", "light-dark(red, red)");
    /** @type {{failure?: string, ends?: () => string} | undefined} */
    var page = /** @type {any} */ (window).aerostat;
    if (page && page.ends && whole && modern) return;
    if (page && page.ends && modern) {
      tell(
        "This file was cut in the middle: its record ends at " +
          page.ends() +
          " s. A whole copy of the file has the rest.",
      );
      return;
    }
    document.documentElement.className = "";
    if (!whole) {
      tell("This file was cut in the middle, so its drawing cannot move. A whole copy of the file can.");
    } else if (page && page.failure) {
      tell("The record in this file cannot be shown: " + page.failure + ". Below is what needs no script.");
    } else {
      tell(
        "This browser is too old for the moving drawing; Firefox 120, Chrome 123, Safari 17.5 and later ones show it. Below is what needs no script.",
      );
    }
  });
})();
