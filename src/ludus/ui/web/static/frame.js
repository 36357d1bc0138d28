// A restarted server may ask for its token again: then the page is loaded anew, which shows the form.
setInterval(async () => {
  if (!window.socket || window.socket.connected) return;
  const answer = await fetch("/favicon.ico", { cache: "no-store" }).catch(() => null);
  if (answer && answer.status === 401) location.reload();
}, 2000);
