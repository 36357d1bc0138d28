// What people who see little, or use no mouse, would stumble over in a page: names, contrast (WCAG AA), ids.
() => {
  const problems = [];
  const brief = (one) => one.outerHTML.slice(0, 120);
  const shown = (one) => one.checkVisibility({visibilityProperty: true, opacityProperty: true});
  const name = (one) => one.getAttribute("aria-label") || one.textContent.trim()
    || [...(one.labels ?? [])].map((label) => label.textContent.trim()).join("");
  for (const one of document.querySelectorAll("button, a, input, select, progress, svg, [role=img], [role=tab]"))
    if (shown(one) && !one.closest("[aria-hidden=true]") && !name(one)) problems.push("no name: " + brief(one));
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => problems.push("twice: " + id));
  if (document.querySelectorAll("h1").length !== 1) problems.push("not one h1");
  if (document.documentElement.lang.slice(0, 2) !== "en") problems.push("no language");
  const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (one) => {
    for (; one; one = one.parentElement) {
      const color = parse(getComputedStyle(one).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  for (const one of document.querySelectorAll("main *, header *")) {
    const text = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!text || !shown(one) || one.closest(":disabled, [aria-disabled=true], .hidden")) continue;
    const [a, b] = [light(parse(getComputedStyle(one).color)), light(ground(one))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) problems.push("faint: " + brief(one));
  }
  return problems;
}
