// What the theme and the tables of Markdown leave out for users of a keyboard or a screen reader.
function mendForReaders() {
  // A name must contain what is seen: the button reads "Search Ctrl+K", its label only "Search".
  for (const button of document.querySelectorAll(".search-button-field")) {
    button.setAttribute("aria-label", button.textContent.replace(/\s+/g, " ").trim());
  }
  // The arrow that unfolds a part of the navigation has no text.
  for (const arrow of document.querySelectorAll("nav summary")) {
    const above = arrow.closest("li")?.querySelector("a");
    if (above && !arrow.textContent.trim()) {
      arrow.setAttribute("aria-label", `Pages below ${above.textContent.trim()}`);
    }
  }
  // A cell without text above a column heads nothing.
  for (const cell of document.querySelectorAll(".bd-article thead th")) {
    if (!cell.textContent.trim()) {
      const plain = document.createElement("td");
      plain.className = cell.className;
      cell.replaceWith(plain);
    }
  }
  markScrollable();
}

// What scrolls sideways must be reachable by keyboard.
function markScrollable() {
  for (const box of document.querySelectorAll(".bd-article table, .bd-article .output_html")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

document.addEventListener("DOMContentLoaded", mendForReaders);
window.addEventListener("resize", markScrollable);
