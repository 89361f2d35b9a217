// Preload for the reference server: make it listen on 127.0.0.1 instead of every address.
import net from 'node:net';

const listen = net.Server.prototype.listen;

net.Server.prototype.listen = function (port, ...rest) {
  const hasHost = typeof rest[0] === 'string';
  return listen.call(this, port, ...(hasHost ? rest : ['127.0.0.1', ...rest]));
};
