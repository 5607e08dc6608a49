// A random program of writes, stops and cuts at a browser, an edge and an origin. After each step it compares the marks of the pages of
// the browser and of the edge with the origin's log.

import { differences, falselyConfirmed, nameOf, namesOf, thingsOf } from './check.js';
import { listedContradictions, Registers } from './contradictions.js';

// A picture of one pixel. Additional bytes at its end make it another file.
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';

const members = ['camera', 'film']; // of metadata
const maxReads = 30; // of a page, until its host's lists do not change meanwhile

/** Returns a function that draws numbers below n, the same ones for the same seed. */
function drawer(seed) {
  let a = seed * 2654435761 + 1;
  return (n) => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * n);
  };
}

const limit = 180_000; // ms for a wait: a host pauses for up to a minute between two attempts to reach the origin

/** Waits until `condition` returns a true value, and returns it. */
async function until(condition, label) {
  for (const since = performance.now(); ; await new Promise((resolve) => setTimeout(resolve, 20))) {
    const found = await condition();
    if (found) return found;
    if (performance.now() - since > limit) throw new Error(`not within three minutes: ${label}`);
  }
}

/** Returns the names of the operations that the origin's log has gained. */
const newest = (before, after) => after.order.slice(before.cursor).map(({ name }) => name);

/** A random program. place: the origin, the edge and their connections of world.js, with the pages of run.js. */
export class Program {
  #place;
  #draw;
  #prefix;
  #count = 0; // things made
  #made = { browser: new Map(), edge: new Map() }; // by the name of an operation of a host: the things that it changes
  #views = {}; // the ids that each page showed at its last read
  #listed = {}; // the contradictions at each host, by register
  #log = new Map(); // the origin's log, by the names of its operations
  #registers = new Registers();
  contradictions = 0; // listed ones that were compared
  #isOffline = false; // the person took the browser offline
  trail = []; // the steps so far
  checked = 0; // marks

  constructor(place, seed) {
    this.#place = place;
    this.#draw = drawer(seed);
    this.#prefix = `p${seed}-`;
  }

  async run(steps) {
    await this.#check();
    for (const action of ['addPicture', 'addPicture', 'addModel']) await this[action](); // so that a training can succeed
    await this.sync();
    await this.#check();
    for (const action of ['cutEdge', 'cutBrowser', 'goOffline', 'stopOrStart']) if (this.#draw(2)) await this[action]();
    for (let i = 0; i < steps; i++) {
      await this.#step();
      await this.#check();
    }
    await this.#heal();
  }

  #pick = (all) => all[this.#draw(all.length)];
  /** Draws 0 more often than 1, so that hosts often write the same. */
  #few = () => Number(this.#draw(3) === 0);
  /** Draws an input, the first one more often than others. */
  #one = (inputs) => (this.#draw(3) ? inputs.toSorted()[0] : this.#pick(inputs));
  #id = (kind) => `${this.#prefix}${kind}${++this.#count}`;

  async #step() {
    const actions = {
      addPicture: 6,
      label: 12,
      describe: 6,
      remove: 2,
      addModel: 4,
      train: 12,
      rename: 4,
      stopOrStart: 2,
      cutEdge: 2,
      cutBrowser: 2,
      goOffline: 2,
      reload: 2,
      sync: 2,
      decide: 3,
    };
    await this[this.#pick(Object.entries(actions).flatMap(([name, weight]) => Array(weight).fill(name)))]();
  }

  #note = (text) => this.trail.push(text);

  /**
   * Sends a write to a host, by its page or by another program. call: returns the method, the path, the body, the things that the write
   * changes, and its effect on registers.
   */
  async #write(call) {
    const hosts = ['browser', 'browser', 'edge', 'edge', ...(this.#place.isOriginRunning() ? ['origin'] : [])];
    const host = this.#pick(hosts);
    const byPage = this.#draw(3) > 0 && this.#place.pages[host]?.isDrawn === false;
    const { method, path, body, things, effect } = call(this.#views[host] ?? this.#views.edge, host) ?? {};
    if (!method) return;
    this.#note(`${method} ${path} at the ${host}${byPage ? ', by its page' : ''}: ${things}`);
    const before = await this.#state(host);
    const { names, failure, ...marks } = await this.#send(host, byPage, { method, path, body, things });
    if (failure) this.#note(`  it fails: ${JSON.stringify(failure)}`);
    for (const name of names) this.#made[host].set(name, things);
    const after = await this.#state(host);
    if (effect && !failure)
      this.#apply(effect, host === 'origin' ? newest(before, after) : names, before, after, Number(host === 'origin'));
    if (byPage) this.#compare(host, marks);
  }

  /** Sends a write. It returns the names of its operations, and by a page the marks that the page shows then. */
  async #send(host, byPage, { method, path, body, things }) {
    if (byPage) {
      const keys = things.filter((one) => !one.startsWith('label ')).map((one) => one.split(' '));
      const answer = await this.#place.pages[host].ask('write', { method, path, body, things: keys });
      return { ...answer, names: answer.operations.flatMap(namesOf) };
    }
    const { operations, status } = await this.#place.call[host](method, `/v2${path}`, body);
    return { names: operations ? namesOf(operations) : [], failure: status.code === 10000 ? undefined : status };
  }

  /** Returns the operations that a host has folded, in their order; undefined if its replica is not open. cursor: those of the log. */
  async #state(host) {
    const lists = host !== 'origin' ? await this.#place.lists[host]() : undefined;
    await this.#readLog();
    return this.#order(host, lists);
  }

  #order(host, lists) {
    const log = [...this.#log.values()];
    if (host === 'origin') return { cursor: log.length, order: log };
    if (!lists) return undefined;
    const pending = lists.operations.map(({ writer, seq, at }) => ({
      name: nameOf({ writer, seq }),
      writer,
      at: Date.parse(at),
    }));
    const { cursor } = lists.status;
    return { cursor, order: [...log.slice(0, cursor), ...pending] };
  }

  /** Notes the effect of a write on registers. If the host pulled entries meanwhile, it is unknown what the write's maker saw. */
  #apply({ creates, deletes, values = [] }, names, before, after, own) {
    const [name, ...others] = names;
    const isClear = before && after && !others.length && name && (creates || before.cursor === after.cursor - own);
    if (deletes && name) for (const one of names) this.#registers.delete(one, deletes);
    else if (creates && isClear) this.#registers.create(name, creates, values);
    else
      for (const [register, value] of values)
        isClear ? this.#registers.write(name, register, value, before.order) : this.#registers.lose(register);
  }

  addPicture() {
    if (this.#views.edge.inputs.length >= 3) return this.label();
    const id = this.#id('i');
    const base64 = Buffer.concat([Buffer.from(pixel, 'base64'), Buffer.from(id)]).toString('base64');
    const present = this.#count % 2;
    const concepts = [0, 1].map((n) => ({ id: `${this.#prefix}c${n}`, value: Number(n === present) }));
    const body = { inputs: [{ id, data: { image: { base64 }, concepts, metadata: { name: `${id}.jpg` } } }] };
    const things = [`inputs ${id}`, ...concepts.map((one) => `label ${id} ${one.id}`)];
    const values = [
      ...concepts.map((one) => [`label ${id} ${one.id}`, one.value]),
      ...members.map((name) => [`metadata ${id} ${name}`, undefined]),
    ];
    return this.#write(() => ({ method: 'POST', path: '/inputs', body, things, effect: { creates: id, values } }));
  }

  /** Writes a label. */
  label() {
    const concept = `${this.#prefix}c${this.#few()}`;
    return this.#write(({ inputs }) => {
      const id = this.#one(inputs);
      if (!id) return undefined;
      const value = this.#draw(2);
      const body = { action: 'merge', inputs: [{ id, data: { concepts: [{ id: concept, value }] } }] };
      const label = `label ${id} ${concept}`;
      const effect = { values: [[label, value]] };
      return { method: 'PATCH', path: '/inputs', body, things: [`inputs ${id}`, label], effect };
    });
  }

  describe() {
    return this.#write(({ inputs }) => {
      const id = this.#one(inputs);
      if (!id) return undefined;
      const [name, value] = [members[this.#few()], this.#draw(3)];
      const body = { action: 'overwrite', inputs: [{ id, data: { metadata: { [name]: value } } }] };
      const effect = { values: [[`metadata ${id} ${name}`, value]] };
      return { method: 'PATCH', path: '/inputs', body, things: [`inputs ${id}`], effect };
    });
  }

  remove() {
    return this.#write(({ inputs }) => {
      const id = this.#pick(inputs);
      return id && { method: 'DELETE', path: `/inputs/${id}`, things: [`inputs ${id}`], effect: { deletes: id } };
    });
  }

  addModel() {
    if (this.#views.edge.models.length >= 2) return this.train();
    const id = this.#id('m');
    const concepts = [0, 1].map((n) => ({ id: `${this.#prefix}c${n}` }));
    const body = { model: { id, output_info: { data: { concepts } } } };
    return this.#write(() => ({ method: 'POST', path: '/models', body, things: [`models ${id}`] }));
  }

  train() {
    return this.#write(({ models }) => {
      const id = this.#pick(models);
      return id && { method: 'POST', path: `/models/${id}/versions`, body: {}, things: [`models ${id}`] };
    });
  }

  /** Names a concept. */
  rename() {
    return this.#write(({ concepts }) => {
      const id = this.#pick(concepts);
      if (!id) return undefined;
      const name = `${id} ${this.#draw(3)}`;
      const body = { action: 'overwrite', concepts: [{ id, name }] };
      const effect = { values: [[`name ${id}`, name]] };
      return { method: 'PATCH', path: '/concepts', body, things: [`concepts ${id}`], effect };
    });
  }

  /** Keeps a value of a contradiction. */
  decide() {
    return this.#write((_, host) => {
      const [register, { id, all }] = this.#pick([...(this.#listed[host] ?? [])]) ?? ['', {}];
      if (!id) return undefined;
      const keep = this.#draw(all.length);
      const [what, ...key] = register.split(' ');
      const things = [
        what === 'name' ? `concepts ${key[0]}` : `inputs ${key[0]}`,
        ...(what === 'label' ? [register] : []),
      ];
      const effect = { values: [[register, all[keep].value ?? undefined]] };
      return { method: 'PATCH', path: `/sync/conflicts/${id}`, body: { keep }, things, effect };
    });
  }

  async stopOrStart() {
    if (this.#place.isOriginRunning()) {
      this.#note('the origin stops');
      this.#log = await this.#place.stopOrigin();
    } else {
      this.#note('the origin starts');
      await this.#place.startOrigin();
    }
  }

  async #toggle(name) {
    const link = this.#place.links[name];
    this.#note(`the ${name} is ${link.isCut ? 'joined' : 'cut'}`);
    await (link.isCut ? link.join() : link.cut());
  }

  cutEdge() {
    return this.#toggle('edge');
  }

  cutBrowser() {
    return this.#toggle('browser');
  }

  async goOffline() {
    this.#isOffline = !this.#isOffline;
    this.#note(`the person takes the browser ${this.#isOffline ? 'offline' : 'online'}`);
    await this.#place.pages.browser.ask('offline', { on: this.#isOffline });
  }

  async reload() {
    this.#note('the page of the browser is loaded again');
    await this.#place.reload();
  }

  /** Waits until the hosts that reach the origin have all entries of its log, and it has all their operations. */
  async sync() {
    if (!this.#place.isOriginRunning()) return;
    for (const host of ['browser', 'edge']) {
      if (this.#place.links[host].isCut || (host === 'browser' && this.#isOffline)) continue;
      this.#note(`the ${host} syncs`);
      await until(async () => {
        const lists = await this.#place.lists[host]();
        const { size } = await this.#place.readLog();
        const { phase, cursor, queued, sent } = lists?.status ?? {};
        return phase === 'current' && queued + sent === 0 && cursor >= size;
      }, `the ${host} syncs`);
    }
  }

  /** Lets all hosts have all operations. The second time, each gets those that the others have sent. */
  async #syncAll() {
    for (let i = 0; i < 2; i++) await this.sync();
  }

  async #readLog() {
    if (this.#place.isOriginRunning()) this.#log = await this.#place.readLog();
  }

  /** Compares marks of a page, which can know all operations of its host so far, with the origin's log, which was read later. */
  #compare(host, marks) {
    const unheld = [...this.#made[host].keys()].filter((name) => !this.#log.has(name));
    const wrong = falselyConfirmed(marks, this.#made[host], this.#log);
    if (marks.summary === 'confirmed' && unheld.length)
      wrong.push(`the summary is confirmed, and the origin does not have ${unheld}`);
    this.checked += marks.found.length + 1;
    this.#fail(host, wrong);
  }

  #fail(host, wrong) {
    if (wrong.length) throw new Error(`at the ${host}:\n  ${wrong.join('\n  ')}\nafter\n  ${this.trail.join('\n  ')}`);
  }

  /** Lets both pages read, and compares their marks with the origin's log and with the lists of their hosts. */
  async #check() {
    for (const host of ['browser', 'edge']) {
      for (let left = maxReads; ; left--) {
        const before = await this.#place.lists[host]();
        for (const operation of before?.operations ?? []) {
          const name = nameOf(operation);
          this.#made[host].set(name, [...new Set([...(this.#made[host].get(name) ?? []), ...thingsOf(operation)])]);
        }
        const page = this.#place.pages[host];
        const read = await page.ask('read', { prefix: this.#prefix });
        this.#views[host] = read.view;
        const after = await this.#place.lists[host]();
        await this.#readLog();
        this.#compare(host, read.early);
        if (!page.isDrawn) this.#compare(host, read.late);
        if (!before) break; // the replica is not open
        if (JSON.stringify(before) === JSON.stringify(after)) {
          const wrong = differences(read, after);
          if (wrong.length && page.isDrawn && left) continue; // an edge's page asks for its status every two seconds
          this.#fail(host, [...wrong, ...this.#compareContradictions(host, after)]);
          if (page.isDrawn) this.#compare(host, read.late);
          break;
        }
        if (!left) throw new Error(`the lists of the ${host} change all the time`);
      }
    }
  }

  /** Returns the differences between the contradictions that a host lists and those that follow from the operations that it has folded. */
  #compareContradictions(host, lists) {
    const { order } = this.#order(host, lists);
    const expected = this.#registers.expected(order);
    const listed = listedContradictions(lists.conflicts, this.#prefix);
    this.#listed[host] = listed;
    const all = new Set([...expected.keys(), ...listed.keys()].filter((one) => !this.#registers.isUnclear(one)));
    this.contradictions += all.size;
    return [...all].flatMap((register) => {
      const [got, want] = [listed.get(register)?.values, expected.get(register)];
      return got === want ? [] : [`the values of ${register} in the list are ${got}, want ${want}`];
    });
  }

  /** Ends all interruptions, and decides all contradictions. Then no host lists one. */
  async #heal() {
    if (!this.#place.isOriginRunning()) await this.stopOrStart();
    for (const name of ['edge', 'browser']) if (this.#place.links[name].isCut) await this.#toggle(name);
    if (this.#isOffline) await this.goOffline();
    await this.#syncAll();
    await this.#check();
    const host = this.#pick(['browser', 'edge']);
    for (const { id, verdict, field } of (await this.#place.lists[host]()).conflicts) {
      if (verdict !== 'contradiction') continue;
      const [method, body] = field === 'deletion' ? ['DELETE'] : ['PATCH', { keep: 0 }];
      await this.#place.call[host](method, `/v2/sync/conflicts/${id}`, body);
    }
    await this.#syncAll();
    for (const host of ['browser', 'edge']) {
      const left = (await this.#place.lists[host]()).conflicts.filter(({ verdict }) => verdict === 'contradiction');
      this.#fail(
        host,
        left.map(({ id }) => `the contradiction ${id} is decided, and still listed`),
      );
    }
    const { conflicts } = await this.#place.call.origin('GET', '/v2/sync/conflicts?per_page=1000');
    this.#fail(
      'origin',
      conflicts.map(({ id }) => `the contradiction ${id} is decided, and still listed`),
    );
  }
}
