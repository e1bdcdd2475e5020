// What is begun of an answer, kept in the browser until the answer is stored: a page that is loaded again,
// or closed by accident, has it still. Each lies under the lease of its item, beside how long it took so far.

export class Drafts {
  constructor(token) {
    // Another beginning than that of answers that wait to be sent.
    this.prefix = `counterfoil-draft/${token}/`;
  }

  get(lease) {
    try {
      return JSON.parse(localStorage.getItem(this.prefix + lease));
    } catch {
      // The browser may keep storage from us: then there are no drafts.
      return null;
    }
  }

  keep(lease, answer, seconds, comment) {
    try {
      localStorage.setItem(this.prefix + lease, JSON.stringify({ answer, seconds, comment }));
    } catch {
      // As in `get`; or there is no room.
    }
  }

  /** Forget all drafts but those of some leases. */
  only(leases) {
    try {
      const names = Object.keys(localStorage).filter((name) => name.startsWith(this.prefix));
      for (const name of names) if (!leases.includes(name.slice(this.prefix.length))) localStorage.removeItem(name);
    } catch {
      // As in `get`.
    }
  }

  remove(lease) {
    try {
      localStorage.removeItem(this.prefix + lease);
    } catch {
      // As in `get`.
    }
  }
}
