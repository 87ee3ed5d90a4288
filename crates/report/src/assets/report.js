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

  function layout(figure) {
    const color = colors();
    const axis = {
      gridcolor: color.line, linecolor: color.soft, zeroline: false, automargin: true,
      showline: true, ticks: "outside", tickcolor: color.soft, separatethousands: true, exponentformat: "SI",
    };
    return Object.assign({}, figure.layout, {
      xaxis: Object.assign({}, axis, { showgrid: false }, figure.layout.xaxis),
      yaxis: Object.assign({}, axis, figure.layout.yaxis),
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: color.text, family: "system-ui, sans-serif", size: 13 },
      hoverlabel: { bgcolor: color.page, bordercolor: color.soft, font: { color: color.text }, namelength: -1 },
      modebar: { orientation: "v", bgcolor: "rgba(0,0,0,0)", color: color.soft, activecolor: color.text },
      margin: { l: 70, r: 28, t: 12, b: 48 },
    });
  }

  const options = {
    responsive: true, displayModeBar: matchMedia("(hover: hover)").matches ? "hover" : false, displaylogo: false, showLink: false, showSendToCloud: false,
    modeBarButtons: [["toImage", "resetScale2d"]],
  };

  async function draw(number) {
    const target = document.getElementById("live-" + number);
    const parent = target.parentElement;
    parent.classList.add("drawn");
    try {
      await Plotly.react(target, figures[number].data, layout(figures[number]), options);
    } catch (error) {
      parent.classList.remove("drawn");
      console.error(error);
    }
  }

  async function drawAll() {
    for (let number = 0; number < figures.length; number += 1) {
      await draw(number);
    }
  }

  loadLibrary().then(drawAll).then(function () {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  }).catch(function (error) { console.error(error); });
})();
