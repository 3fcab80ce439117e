addEventListener("click", e => {
  const b = e.target.closest("button.copy");
  if (!b) return;
  const pre = b.previousElementSibling;
  const done = () => { b.textContent = "Copied"; setTimeout(() => { b.textContent = "Copy" }, 2000) };
  const select = () => { getSelection().selectAllChildren(pre); if (document.execCommand("copy")) done() };
  if (navigator.clipboard) navigator.clipboard.writeText(pre.textContent).then(done, select); else select();
});
