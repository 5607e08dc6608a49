// Programs that serve, and connections to them that a test can cut.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';

/** Starts a program that serves, and returns its URL, its log and a function that ends it. */
export async function startServer(path, args) {
  const child = spawn(path, ['serve', '--log-format', 'text', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const exit = new Promise((resolve) => child.once('exit', resolve));
  const log = [];
  let onLine = () => {};
  for (const output of [child.stdout, child.stderr])
    createInterface({ input: output }).on('line', (line) => {
      log.push(line);
      onLine();
    });
  /** Waits for a line of the output, past or future, that matches the pattern. Returns the first group of the match. */
  const waitForLine = (pattern) =>
    new Promise((resolve, reject) => {
      onLine = () => {
        const found = log.join('\n').match(pattern);
        if (found) resolve(found[1]);
      };
      onLine();
      void exit.then(() => reject(new Error(`it has ended:\n${log.join('\n')}`)));
    });
  return {
    address: `http://${await waitForLine(/msg=serving address=(\S+)/)}`,
    log,
    waitForLine,
    end: (signal) => {
      child.kill(signal);
      return exit;
    },
  };
}

/** Listens at a free port of loopback, and passes connections on to the server that `to` sets. While it is cut, nothing listens there. */
export async function startLink() {
  let far;
  const sockets = new Set();
  const server = createServer((near) => {
    const onward = connect(far);
    for (const [one, other] of [
      [near, onward],
      [onward, near],
    ]) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  const listen = async (port) => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  await listen(0);
  const { port } = server.address();
  const cut = async () => {
    const closed = server.listening && once(server, 'close');
    server.close();
    for (const one of sockets) one.destroy();
    await closed;
  };
  return {
    address: `http://127.0.0.1:${port}`,
    to: (url) => {
      const { hostname: host, port } = new URL(url);
      far = { host, port: Number(port) };
    },
    cut,
    join: () => listen(port),
    get isCut() {
      return !server.listening;
    },
  };
}
