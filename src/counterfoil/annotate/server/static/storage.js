// What a page keeps in the browser, by name under a prefix: in memory where the browser keeps storage from us,
// or has no room.

export class Kept {
  constructor(prefix, storage = "localStorage") {
    this.prefix = prefix;
    this.storage = storage;
    this.memory = new Map();
  }

  get(name) {
    try {
      return JSON.parse(window[this.storage].getItem(this.prefix + name)) ?? this.memory.get(name);
    } catch {
      return this.memory.get(name);
    }
  }

  get names() {
    const names = new Set(this.memory.keys());
    try {
      const stored = Object.keys(window[this.storage]).filter((name) => name.startsWith(this.prefix));
      for (const name of stored) names.add(name.slice(this.prefix.length));
    } catch {
      // Memory has to do.
    }
    return [...names];
  }

  set(name, value) {
    try {
      window[this.storage].setItem(this.prefix + name, JSON.stringify(value));
    } catch {
      this.memory.set(name, value);
    }
  }

  remove(name) {
    this.memory.delete(name);
    try {
      window[this.storage].removeItem(this.prefix + name);
    } catch {
      // It was in memory.
    }
  }

  /** Forget all but some names. */
  only(names) {
    for (const name of this.names) if (!names.includes(name)) this.remove(name);
  }
}
