// Required before the specs: a connection to anything but loopback ends the run.
'use strict';
const net = require('net');
const connect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...args) {
  const options = Array.isArray(args[0]) ? args[0][0] : args[0];
  const host = typeof options === 'object' ? options.host : args[1];
  if (!options.path && !/^(127\.0\.0\.1|localhost|::1)$/.test(host ?? 'localhost')) {
    console.error(`harness: a connection to ${host}`);
    process.exit(2);
  }
  return connect.apply(this, args);
};
