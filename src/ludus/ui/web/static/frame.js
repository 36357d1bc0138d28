// What the server tells pages, by topic; a page that is still loading asks for everything when it is there.
window.ludus = {
  listeners: {},
  on(topic, listener) {
    (this.listeners[topic] ??= []).push(listener);
  },
  receive(topic, what) {
    for (const listener of this.listeners[topic] ?? []) listener(what);
  },
  number(value) {
    if (value === null || value === undefined) return "";
    const size = Math.abs(value);
    if (size >= 1e6) return value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 4 });
    if (size >= 1000) return value.toLocaleString("en", { maximumFractionDigits: 0 });
    if (size !== 0 && size < 1e-3) return value.toExponential(2);
    return value.toLocaleString("en", { maximumSignificantDigits: 4 });
  },
  late: (seconds) => seconds >= 40, // of a machine that gives a sign of life every 30 s
  clock(seconds) {
    if (seconds === null || seconds === undefined) return "";
    const two = (number) => String(Math.floor(number)).padStart(2, "0");
    const days = Math.floor(seconds / 86400);
    const text = `${two((seconds % 86400) / 3600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}`;
    return days ? `${days} d ${text}` : text;
  },
};

// A restarted server may ask for its token again: then the page is loaded anew, which shows the form.
setInterval(async () => {
  if (!window.socket || window.socket.connected) return;
  const answer = await fetch("/favicon.ico", { cache: "no-store" }).catch(() => null);
  if (answer && answer.status === 401) location.reload();
}, 2000);
