// The page works without this: scripts add a filter, a copy button and the words of the glossary.
(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const colour = name =>
    getComputedStyle(document.documentElement).getPropertyValue(`--c-${name}`).trim();

  // ---- links into folded parts open them
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") node.open = true;
    }
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();

  // ---- tables that go on behind the edge say so
  const mark = box => {
    const rest = box.scrollWidth - box.clientWidth - box.scrollLeft;
    box.classList.toggle("more", rest > 2);
  };
  if ("ResizeObserver" in window) {
    const sizes = new ResizeObserver(entries => entries.forEach(entry => mark(entry.target)));
    for (const box of all(".scroll")) {
      sizes.observe(box);
      box.addEventListener("scroll", () => mark(box), { passive: true });
    }
  }

  // ---- words of the glossary, explained where they stand: under the pointer, in focus, on a tap
  let tip = null;
  const hideTip = () => {
    if (!tip) return;
    tip.word.removeAttribute("aria-describedby");
    tip.box.remove();
    tip = null;
  };
  const showTip = word => {
    if (tip && tip.word === word) return;
    hideTip();
    const entry = document.getElementById(word.hash.slice(1));
    if (!entry) return;
    const box = document.createElement("div");
    box.className = "tip";
    box.id = "tip";
    box.setAttribute("role", "tooltip");
    // the word stands for one entry, or for all of a section
    for (const text of entry.matches("dl") ? entry.children : [entry]) {
      const line = document.createElement("p");
      if (entry.matches("dl")) {
        const name = document.createElement("strong");
        name.textContent = `${text.querySelector("dt").textContent.trim()}. `;
        line.append(name);
      }
      line.append(text.querySelector("dd").textContent);
      box.append(line);
    }
    // at the end of the page: inside a table that scrolls it would be cut
    document.body.append(box);
    word.setAttribute("aria-describedby", box.id);
    const place = word.getBoundingClientRect();
    const room = document.documentElement.clientWidth - box.offsetWidth - 16;
    const origin = document.body.getBoundingClientRect();
    box.style.left = `${Math.max(16, Math.min(place.left, room)) - origin.left}px`;
    const above = place.bottom + box.offsetHeight + 8 > innerHeight && place.top > box.offsetHeight;
    const top = above ? place.top - box.offsetHeight - 6 : place.bottom + 6;
    box.style.top = `${top - origin.top}px`;
    // the pointer may move onto the text, to select it
    box.addEventListener("pointerleave", hideTip);
    tip = { word, box };
  };
  for (const word of all(".term")) {
    word.addEventListener("pointerenter", event => {
      if (event.pointerType === "mouse") showTip(word);
    });
    word.addEventListener("pointerleave", event => {
      if (tip && event.pointerType === "mouse" && !tip.box.contains(event.relatedTarget)) hideTip();
    });
    word.addEventListener("focus", () => showTip(word));
    word.addEventListener("blur", hideTip);
    word.addEventListener("click", event => {
      // a tap explains; a click or Enter goes to the glossary
      if (event.pointerType !== "touch") return hideTip();
      event.preventDefault();
      showTip(word);
    });
  }
  addEventListener("keydown", event => { if (event.key === "Escape") hideTip(); });

  // ---- filter over tasks
  const filter = document.getElementById("filter");
  if (filter) {
    const tasks = all("section.task");
    filter.parentElement.hidden = false;
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/);
      const fits = node => words.every(word => node.dataset.task.includes(word));
      for (const node of tasks) node.hidden = !fits(node);
      const shown = tasks.filter(node => !node.hidden).length;
      document.getElementById("shown").textContent = `${shown} of ${tasks.length} tasks`;
    });
  }

  // ---- copy
  for (const button of all(".copy")) {
    const code = button.parentElement.querySelector("code");
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected: copy with your keyboard";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2500);
    });
  }

  // ---- on paper everything is open
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    for (const node of folded) node.open = true;
  });
  addEventListener("afterprint", () => {
    for (const node of folded) node.open = false;
    folded = [];
  });
})();
