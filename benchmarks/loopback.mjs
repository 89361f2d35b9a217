// Preloaded into the reference server, which would listen on every address: keep it on this machine.
import net from 'node:net';

const listen = net.Server.prototype.listen;

net.Server.prototype.listen = function (port, ...rest) {
  const named = typeof rest[0] === 'string';
  return listen.call(this, port, ...(named ? rest : ['127.0.0.1', ...rest]));
};
