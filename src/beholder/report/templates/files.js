// What every page needs: packed data unpacked, files saved, tables as CSV.
// JSON that was compressed into the page.
window.unpacked = (element) => {
  const bytes = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
};
window.save = (name, blob) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
// A cell that a spreadsheet would take for a formula is marked as text.
window.csv = (rows) =>
  rows.map((row) => row.map((cell) => {
    const text = cell === null || cell === undefined ? "" : typeof cell === "string" && /^[=+\-@\t\r]/.test(cell) ? "'" + cell : String(cell);
    return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  }).join(",")).join("\n") + "\n";
