// Shows the claims that fit what is chosen; the choice is part of the address, so that it can be passed on.
const filters = document.getElementById("ledger-filters");
const rows = [...document.querySelectorAll("#ledger tbody tr")];

function show() {
  const chosen = [...new FormData(filters)].filter(([, value]) => value);
  for (const row of rows) row.hidden = !chosen.every(([name, value]) => row.dataset[name] === value);
  const shown = rows.filter((row) => !row.hidden).length;
  document.getElementById("ledger-count").textContent = `${shown} of ${rows.length} entries`;
  return chosen;
}

for (const [name, value] of new URLSearchParams(location.search)) {
  if (filters.elements[name]) filters.elements[name].value = value;
}
filters.addEventListener("change", () => {
  const query = new URLSearchParams(show()).toString();
  history.replaceState(null, "", location.pathname + (query && `?${query}`) + location.hash);
});
show();
