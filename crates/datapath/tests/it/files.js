// Serves files in the ordinary way of Node: `node files.js CONTENT LOG LISTEN...`. LISTEN is the path of a Unix socket, or
// ADDRESS:PORT. A request's body is read, and its size told in the field X-Body. A directory is listed, without its length.
// LOG gets the line `CLIENT:PORT STATUS BYTES "REQUEST"` for each answer.
'use strict';
const fs = require('fs');
const http = require('http');

const [content, log, ...places] = process.argv.slice(2);

async function serve(request, response) {
  const { remoteAddress, remotePort } = request.socket;
  let body = 0;
  for await (const chunk of request) body += chunk.length;
  response.setHeader('X-Body', body);
  let bytes = 0;
  response.on('close', () => {
    const what = `${request.method} ${request.url} HTTP/${request.httpVersion}`;
    fs.appendFileSync(log, `${remoteAddress}:${remotePort} ${response.statusCode} ${bytes} "${what}"\n`);
  });
  const path = content + request.url;
  const found = await fs.promises.stat(path).catch(() => null);
  if (found === null) {
    response.writeHead(404, { 'Content-Length': 5 });
    return response.end('none\n');
  }
  if (found.isDirectory()) {
    for (const name of await fs.promises.readdir(path)) response.write(`${name}\n`);
    return response.end();
  }
  response.writeHead(200, { 'Content-Length': found.size });
  if (request.method === 'HEAD') return response.end();
  const stream = fs.createReadStream(path);
  stream.on('data', (chunk) => { bytes += chunk.length; });
  return stream.pipe(response);
}

for (const place of places) {
  const server = http.createServer((request, response) => {
    // A client that leaves in the middle of its request.
    serve(request, response).catch(() => request.socket.destroy());
  });
  server.keepAliveTimeout = 60_000;
  const [, address, port] = place.match(/^([^/]+):(\d+)$/) || [];
  if (port) server.listen(Number(port), address);
  else server.listen(place);
}
