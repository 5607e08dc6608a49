// The connection to the test for a worker that blocks in Atomics.wait. It sends the worker's messages to the test, writes the
// answers to the memory that both workers share, and wakes the other worker.
let shared;
let socket;

onmessage = ({ data }) => {
  if (shared) {
    socket.send(data);
    return;
  }
  shared = data;
  socket = new WebSocket('/turns');
  socket.binaryType = 'arraybuffer';
  socket.onopen = () => postMessage('open');
  socket.onmessage = (message) => {
    const state = new Int32Array(shared, 0, 2);
    new Uint8Array(shared, 8).set(new Uint8Array(message.data));
    state[1] = message.data.byteLength;
    Atomics.store(state, 0, 1);
    Atomics.notify(state, 0);
  };
};
