"use strict";
const D = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const css = name =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const esc = s => String(s).replace(
    /[&<>"]/g,
    c => ({"&" : "&amp;", "<" : "&lt;", ">" : "&gt;", '"' : "&quot;"}[c]));
const wanted = new URLSearchParams(location.hash.slice(1));
let dark = false;
// Calls paint() now and whenever the scheme changes: the system's, unless
// #theme=dark or the button says otherwise.
function followTheme(paint) {
  const root = document.documentElement,
        system = matchMedia("(prefers-color-scheme: dark)");
  const set = theme => {
    if (theme)
      root.dataset.theme = theme;
    dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
    paint();
  };
  $("theme").onclick = () => set(dark ? "light" : "dark");
  system.addEventListener("change", () => set());
  set(wanted.get("theme"));
}
function hideTip() { $("tip").style.display = "none"; }
function showTip(html, x, y) {
  const box = $("tip");
  box.innerHTML = html;
  box.style.display = "block";
  const b = box.getBoundingClientRect();
  box.style.left =
      Math.max(4, Math.min(x + 14, innerWidth - b.width - 8)) + "px";
  box.style.top =
      (y + 18 + b.height > innerHeight ? y - b.height - 10 : y + 18) + "px";
}
