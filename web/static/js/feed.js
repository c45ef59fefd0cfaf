// The live socket: subscribes, resumes, notices gaps and silence, comes back jittered. It keeps no rows;
// whoever makes it is told of snapshots, patches and the state of the connection.

const SILENCE = 4000; // two beats, which come every two seconds; a page says within five that it is cut off
const HANDSHAKE = 10000;

export class Feed {
  // on: { snapshot(topic, body), patch(topic, body), state(name) }, name one of
  // "connecting", "live", "lost", "ended", "forbidden".
  constructor(topics, on) {
    this.on = on;
    this.topics = new Map(topics.map((name) => [name, { epoch: "", seq: 0, asOf: 0, waiting: true }]));
    this.tries = 0;
    this.clockAt = 0; // the server's clock and when it was heard
    this.heardAt = performance.now();
    this.state = "";
    this.timer = setInterval(() => this.watch(), 500);
    window.addEventListener("online", () => this.hurry());
    window.addEventListener("pagehide", () => this.socket && this.socket.close());
    window.addEventListener("pageshow", (event) => event.persisted && this.hurry());
    this.open();
  }

  // The server's clock now, in Unix milliseconds.
  now() {
    return this.clockAt ? this.clockAt + (performance.now() - this.heardAt) : Date.now();
  }

  // Age of the oldest facts on the page, in milliseconds; -1 before any.
  age() {
    let oldest = Infinity;
    for (const t of this.topics.values()) oldest = Math.min(oldest, t.asOf);
    return oldest > 0 && oldest < Infinity ? Math.max(0, this.now() - oldest) : -1;
  }

  open() {
    clearTimeout(this.retry);
    this.retry = 0;
    this.move(this.tries === 0 && this.state === "" ? "connecting" : "lost");
    const address = new URL("/live", location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address);
    this.socket = socket;
    this.openedAt = performance.now();
    socket.onopen = () => {
      const topics = [...this.topics].map(([topic, t]) => ({ topic, epoch: t.epoch, seq: t.seq }));
      socket.send(JSON.stringify({ hello: { topics } }));
    };
    socket.onmessage = (event) => socket === this.socket && this.hear(JSON.parse(event.data));
    socket.onclose = (event) => socket === this.socket && this.closed(event.code);
  }

  hear(m) {
    this.heardAt = performance.now();
    this.tries = 0;
    if (m.beat) {
      this.clockAt = m.beat.now;
      const behind = [];
      for (const [name, t] of this.topics) {
        const b = m.beat.topics[name];
        if (!b) continue;
        if (t.epoch === m.beat.epoch && t.seq === b.seq) t.asOf = b.as_of;
        else if (!t.waiting && (t.epoch !== m.beat.epoch || t.seq < b.seq)) behind.push(name);
      }
      this.resync(behind);
      this.move("live");
      return;
    }
    const t = this.topics.get(m.topic);
    if (!t) return;
    this.clockAt = m.now;
    if (m.snapshot) {
      Object.assign(t, { epoch: m.epoch, seq: m.seq, asOf: m.as_of, waiting: false });
      this.on.snapshot(m.topic, m.snapshot);
    } else if (m.resumed) {
      t.waiting = false;
      if (t.seq !== m.seq) this.resync([m.topic]);
    } else if (m.patch && !t.waiting) {
      if (t.epoch !== m.epoch || m.seq !== t.seq + 1) {
        this.resync([m.topic]);
      } else {
        Object.assign(t, { seq: m.seq, asOf: m.as_of });
        this.on.patch(m.topic, m.patch);
      }
    }
    this.move("live");
  }

  resync(names) {
    if (names.length === 0 || this.socket.readyState !== WebSocket.OPEN) return;
    for (const name of names) this.topics.get(name).waiting = true;
    this.socket.send(JSON.stringify({ resync: names }));
  }

  closed(code) {
    this.socket = null;
    for (const t of this.topics.values()) t.waiting = true;
    if (code === 4001) return this.end("ended");
    if (code === 4003 || code === 1008) return this.end("forbidden");
    this.move("lost");
    // Everybody was cut at the same moment: nobody may come back at the same one.
    const most = Math.min(15000, 1000 * 2 ** this.tries++);
    const least = code === 1012 || code === 4008 ? 200 : 50;
    this.retry = setTimeout(() => this.open(), least + Math.random() * most);
  }

  end(name) {
    clearInterval(this.timer);
    this.move(name);
  }

  // A connection that went away without a word, and one that never came about.
  watch() {
    const now = performance.now();
    const socket = this.socket;
    if (!socket) return;
    const silent = socket.readyState === WebSocket.OPEN && now - Math.max(this.heardAt, this.openedAt) > SILENCE;
    const stuck = socket.readyState === WebSocket.CONNECTING && now - this.openedAt > HANDSHAKE;
    if (silent || stuck) {
      socket.onclose = null;
      socket.close();
      this.closed(1006);
    } else if (this.state === "live" && now - this.heardAt > SILENCE) {
      this.move("lost");
    }
  }

  hurry() {
    if (this.socket || this.state === "ended" || this.state === "forbidden") return;
    this.tries = 0;
    this.open();
  }

  move(name) {
    if (this.state === name) return;
    this.state = name;
    this.on.state(name);
  }
}
