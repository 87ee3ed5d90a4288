// Replaces the static plots by interactive ones. Where anything is missing or fails, the static plots stay.
(function () {
  "use strict";
  const figures = JSON.parse(document.getElementById("plot-data").textContent);

  async function loadLibrary() {
    const text = document.getElementById("plot-library").textContent;
    const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(unpacked).text();
    document.head.appendChild(script);
  }

  function colors() {
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    return { text: color("--text"), soft: color("--soft"), line: color("--line"), page: color("--page") };
  }

  // Narrower plots name their lines below.
  const NARROW_PX = 520;
  const LABEL_PX = 15;
  const CHARACTER_PX = 6.7;

  function labelRoom(figure, width) {
    if (figure.ends.length === 0 || width < NARROW_PX) return 0;
    return 22 + CHARACTER_PX * Math.max(...figure.ends.map((end) => end.name.length));
  }

  function layout(figure, width) {
    const color = colors();
    const axis = {
      gridcolor: color.line, linecolor: color.soft, zeroline: false, automargin: true,
      showline: true, ticks: "outside", tickcolor: color.soft, separatethousands: true, exponentformat: "SI",
    };
    const room = labelRoom(figure, width);
    const named = figure.layout.showlegend && figure.ends.length === 0;
    return Object.assign({}, figure.layout, {
      xaxis: Object.assign({}, axis, { showgrid: false }, figure.layout.xaxis),
      yaxis: Object.assign({}, axis, figure.layout.yaxis),
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: color.text, family: "system-ui, sans-serif", size: width < NARROW_PX ? 11 : 13 },
      hoverlabel: { bgcolor: color.page, bordercolor: color.soft, font: { color: color.text }, namelength: -1 },
      modebar: { orientation: "v", bgcolor: "rgba(0,0,0,0)", color: color.soft, activecolor: color.text },
      // Values stand beside bars that lie.
      margin: { l: 70, r: figure.data.length > 0 && figure.data[0].orientation === "h" ? 64 : Math.max(28, room), t: 12, b: 48 },
      showlegend: named,
      annotations: [],
    });
  }

  // Places that are `distance` apart at least, in the order of the wanted ones, from `top` to `bottom`.
  function apart(wanted, distance, top, bottom) {
    const order = wanted.map((_, index) => index).sort((a, b) => wanted[a] - wanted[b]);
    const step = Math.min(distance, (bottom - top) / Math.max(1, wanted.length - 1));
    const places = wanted.slice();
    let least = top;
    for (const index of order) {
      places[index] = Math.max(places[index], least);
      least = places[index] + step;
    }
    let most = bottom;
    for (const index of order.reverse()) {
      places[index] = Math.min(places[index], most);
      most = places[index] - step;
    }
    return places;
  }

  // Names at the ends of lines, moved apart. The axes are known once the plot is drawn.
  function endLabels(target, figure, width) {
    const room = labelRoom(figure, width);
    if (room === 0) return [];
    const full = target._fullLayout;
    const size = full._size;
    const log = (axis, value) => (axis.type === "log" ? Math.log10(value) : value);
    const wanted = figure.ends.map((end) => full.yaxis.l2p(log(full.yaxis, end.y)));
    const places = apart(wanted, LABEL_PX, 0, size.h);
    return figure.ends.map((end, index) => {
      const from = full.xaxis.l2p(log(full.xaxis, end.x));
      return {
        text: end.name, font: { size: 12 }, align: "left", xanchor: "left", yanchor: "middle",
        xref: "paper", x: 1, xshift: 12, yref: "paper", y: 1 - places[index] / size.h,
        showarrow: false, bgcolor: "rgba(0,0,0,0)", from: [from, wanted[index], places[index]], color: end.color,
      };
    }).map(({ from, color, ...label }) => ({ label, leader: leader(from, color, size) }));
  }

  // A thin line from the end of a line to its name.
  function leader([x, y, place], color, size) {
    const path = `M${x / size.w},${1 - y / size.h} L${1 + 2 / size.w},${1 - y / size.h} L${1 + 10 / size.w},${1 - place / size.h}`;
    return { type: "path", xref: "paper", yref: "paper", path, line: { color, width: 1 }, opacity: 0.6 };
  }

  const options = {
    responsive: false, displayModeBar: matchMedia("(hover: hover)").matches ? "hover" : false, displaylogo: false, showLink: false, showSendToCloud: false,
    modeBarButtons: [["toImage", "resetScale2d"]],
  };

  // Names of lines as a list below a narrow plot.
  function nameBelow(target, ends) {
    const old = target.parentElement.querySelector(".names");
    if (old) old.remove();
    if (ends.length === 0) return;
    const list = document.createElement("p");
    list.className = "names";
    for (const end of ends) {
      const name = document.createElement("span");
      const stroke = name.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
      stroke.setAttribute("width", "26");
      stroke.setAttribute("height", "10");
      const line = stroke.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "line"));
      const look = { x1: 0, x2: 26, y1: 5, y2: 5, stroke: end.color, "stroke-width": 3, "stroke-dasharray": end.dashes.join(" ") };
      for (const [key, value] of Object.entries(look)) line.setAttribute(key, value);
      // Names are escaped for plotly.js.
      const plain = end.name.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
      name.append(" " + plain);
      list.append(name);
    }
    target.after(list);
  }

  const drawn = new Set();

  async function draw(number) {
    const target = document.getElementById("live-" + number);
    const parent = target.parentElement;
    const figure = figures[number];
    parent.classList.add("drawn");
    try {
      const width = target.clientWidth;
      const least = parseFloat(getComputedStyle(target).minHeight) || 300;
      const wide = width >= NARROW_PX || figure.ends.length === 0;
      // Bars that lie need no more than their rows.
      const lies = figure.data.length > 0 && figure.data[0].orientation === "h";
      target.style.minHeight = lies ? "0" : "";
      target.style.height = (lies ? figure.height : Math.max(least, wide ? figure.height : 0)) + "px";
      nameBelow(target, wide ? [] : figure.ends);
      const plain = layout(figure, width);
      await Plotly.react(target, figure.data, plain, options);
      const labels = endLabels(target, figure, width);
      if (labels.length > 0) {
        await Plotly.relayout(target, { annotations: labels.map((l) => l.label), shapes: labels.map((l) => l.leader) });
      }
      drawn.add(number);
    } catch (error) {
      parent.classList.remove("drawn");
      console.error(error);
    }
  }

  async function redraw() {
    for (const number of drawn) {
      await draw(number);
    }
  }

  // Plots are drawn when they come into sight: a page may have many, some of them folded.
  function watch() {
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries.filter((entry) => entry.isIntersecting)) {
        seen.unobserve(entry.target);
        draw(Number(entry.target.id.slice("static-".length)));
      }
    }, { rootMargin: "800px" });
    figures.forEach((_, number) => seen.observe(document.getElementById("static-" + number)));
  }

  let width = window.innerWidth;
  let waiting = 0;
  window.addEventListener("resize", function () {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 200);
  });

  loadLibrary().then(watch).then(function () {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  }).catch(function (error) { console.error(error); });
})();
