// Shows the claims that fit the filters. The filters are kept in the address, so that it can be shared.
const filters = document.getElementById("ledger-filters");
const rows = [...document.querySelectorAll("#ledger tbody tr")];

function show() {
  const asked = Object.fromEntries([...new FormData(filters)].filter(([, value]) => value));
  const words = (asked.words ?? "").toLowerCase().split(/\s+/);
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    const chosen = ["verdict", "notebook"].every((name) => !asked[name] || row.dataset[name] === asked[name]);
    row.hidden = !(chosen && words.every((word) => text.includes(word)));
  }
  const shown = rows.filter((row) => !row.hidden).length;
  document.getElementById("ledger-count").textContent = `${shown} of ${rows.length} claims`;
  return asked;
}

for (const [name, value] of new URLSearchParams(location.search)) {
  if (filters.elements[name]) filters.elements[name].value = value;
}
filters.addEventListener("input", () => {
  const query = new URLSearchParams(show()).toString();
  history.replaceState(null, "", location.pathname + (query && `?${query}`) + location.hash);
});
filters.addEventListener("submit", (event) => event.preventDefault());
show();
