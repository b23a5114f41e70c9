// The page works without this: scripts add interactive figures, a filter, a copy button.
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

  // ---- still pictures that wait in <noscript>, because there are many
  const unpack = figure => {
    const packed = figure.querySelector("noscript");
    if (packed) packed.parentElement.innerHTML = packed.textContent;
  };

  // ---- on paper everything is open; style shows the still pictures
  let folded = [];
  addEventListener("beforeprint", () => {
    all("figure").forEach(unpack);
    folded = all("details:not([open])");
    for (const node of folded) node.open = true;
  });
  addEventListener("afterprint", () => {
    for (const node of folded) node.open = false;
    folded = [];
  });

  // ---- figures, each shown when it is first seen; interactive where the library is here
  if (!("IntersectionObserver" in window)) {
    all("figure").forEach(unpack);
    return;
  }
  const library = document.getElementById("plotly");
  const LIVE = 40; // pictures kept interactive at once
  const live = new Set();
  const seen = new Set();
  const waiting = [];

  const start = () => {
    if (window.Plotly) return;
    const script = document.createElement("script");
    script.textContent = library.textContent;
    document.head.append(script);
  };

  const painted = figure => {
    const { data, layout } = JSON.parse(figure.querySelector("script").textContent);
    const ink = colour("ink");
    const grid = colour("grid");
    for (const trace of data) {
      const own = colour((trace.meta && trace.meta.role) || "ink");
      trace.marker = { ...trace.marker, color: own };
      trace.line = { ...trace.line, color: own };
      for (const bar of ["error_x", "error_y"]) {
        if (trace[bar]) trace[bar] = { ...trace[bar], color: own };
      }
      if (trace.fill) trace.fillcolor = `${own}40`;
    }
    for (const [name, axis] of Object.entries(layout)) {
      if (!/^[xy]axis\d*$/.test(name)) continue;
      Object.assign(axis, { gridcolor: grid, zerolinecolor: grid, linecolor: ink, tickcolor: ink });
    }
    for (const shape of layout.shapes || []) shape.line = { ...shape.line, color: ink };
    Object.assign(layout, {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { ...layout.font, color: ink, family: getComputedStyle(document.body).fontFamily },
      hoverlabel: { ...layout.hoverlabel, bgcolor: colour("hover"), font: { color: ink } },
      autosize: true,
    });
    delete layout.width;
    // a finger on a picture scrolls the page
    if (matchMedia("(pointer: coarse)").matches) layout.dragmode = false;
    return [data, layout];
  };
  // no button that would send data away
  const settings = {
    displaylogo: false, responsive: true, showSendToCloud: false, plotlyServerURL: "",
    // each button is a stop on the way of who goes by keyboard: two for each chart are enough
    modeBarButtons: [["toImage", "resetScale2d"]],
  };

  const draw = figure => {
    if (!library || !figure.querySelector("script")) return unpack(figure);
    if (live.has(figure)) return;
    try {
      start();
      const [data, layout] = painted(figure);
      const box = document.createElement("div");
      box.className = "plot";
      figure.classList.add("drawn");
      figure.prepend(box);
      live.add(figure);
      Plotly.newPlot(box, data, layout, settings);
    } catch (error) {
      drop(figure);
      console.error(error);
    }
  };

  const drop = figure => {
    const box = figure.querySelector(".plot");
    if (box && window.Plotly) Plotly.purge(box);
    if (box) box.remove();
    figure.classList.remove("drawn");
    unpack(figure);
    live.delete(figure);
  };

  const next = () => {
    const figure = waiting.shift();
    if (figure && seen.has(figure)) draw(figure);
    for (const old of live) {
      if (live.size <= LIVE) break;
      if (!seen.has(old)) drop(old);
    }
    if (waiting.length) setTimeout(next);
  };

  const observer = new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) {
        seen.delete(target);
      } else {
        seen.add(target);
        if (waiting.push(target) === 1) setTimeout(next);
      }
    }
  }, { rootMargin: "200px" });
  for (const figure of all("figure")) observer.observe(figure);

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const figure of live) {
      Plotly.react(figure.querySelector(".plot"), ...painted(figure), settings);
    }
  });
})();
