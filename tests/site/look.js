// The errors of the open page, one line each: pictures that did not load or have no alternative text, controls without
// a name, formulas that were not converted, LaTeX left in the text, elements that stick out to the right (unless they
// scroll in their own box), a missing width for phones, and text with too little contrast (WCAG: 4.5, or 3 for large
// letters).
(() => {
  const said = [];
  const all = (selector) => document.querySelectorAll(selector);
  const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const start = (element) => element.outerHTML.slice(0, 100);

  for (const picture of document.images) {
    if (!picture.naturalWidth) said.push("no picture: " + picture.src);
    if (!picture.alt.trim()) said.push("no words for a picture: " + start(picture));
  }
  for (const control of all("a[href], button, select, input:not([type=hidden])")) {
    const words = [control.textContent, control.title, control.ariaLabel, control.querySelector("img")?.alt];
    const labels = [...(control.labels ?? [])].map((label) => label.textContent);
    if (!words.concat(labels).join("").trim()) said.push("no name: " + start(control));
  }
  for (const formula of all(".math"))
    if (!formula.querySelector("math")) said.push("no formula: " + formula.textContent.slice(0, 60));

  const scrolls = (element) =>
    element !== document.body &&
    (/auto|scroll/.test(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
  for (const element of all(":is(article, header) :not(math *)")) {
    const box = element.getBoundingClientRect();
    const right = Math.max(box.right, box.left + element.scrollWidth); // a long word sticks out of its box
    if (box.width && right > innerWidth + 1 && shown(element))
      if (!scrolls(element)) said.push("sticks out: " + start(element));
  }
  if (document.documentElement.scrollWidth > innerWidth) said.push("the page scrolls sideways");
  if (!document.querySelector("meta[name=viewport][content*='width=device-width']")) said.push("no width for phones");

  // Colours as [red, green, blue, opacity], each from 0 to 1.
  const colour = (text) => {
    const [red, green, blue, opacity = 1] = text.match(/[\d.e-]+/g).map(Number);
    const scale = text.startsWith("color(") ? 1 : 255;
    return [red / scale, green / scale, blue / scale, opacity];
  };
  const over = (front, back) => [0, 1, 2].map((i) => front[i] * front[3] + back[i] * (1 - front[3])).concat(1);
  const known = new Map();
  const behind = (element) => {
    if (!element) return colour(getComputedStyle(document.documentElement).colorScheme === "dark" ? "0 0 0" : "255 255 255");
    if (!known.has(element)) {
      const own = colour(getComputedStyle(element).backgroundColor);
      known.set(element, own[3] === 1 ? own : over(own, behind(element.parentElement)));
    }
    return known.get(element);
  };
  const light = ([...rgb]) => {
    const part = rgb.slice(0, 3).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const seen = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.data.trim();
    const element = texts.currentNode.parentElement;
    if (!text || element.closest("script, style, math") || !shown(element)) continue;
    if (/\\[a-zA-Z([]|\$/.test(text) && !element.closest("pre, code")) said.push("LaTeX: " + text.slice(0, 60));
    if (seen.has(element)) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const back = behind(element);
    const [dark, bright] = [light(over(colour(style.color), back)), light(back)].sort((a, b) => a - b);
    const contrast = (bright + 0.05) / (dark + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (contrast < (large ? 3 : 4.5)) said.push(`contrast ${contrast.toFixed(2)}: ` + start(element));
  }
  return said;
})()
