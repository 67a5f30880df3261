import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';

/** Of the protocol of PostgreSQL: asks whether there is TLS. */
const SSL_REQUEST = 8;

/** Says to PostgreSQL's clients that it has TLS, with a certificate of its own; undefined where openssl is missing. */
export async function selfSigned(): Promise<{ readonly port: number; close(): void } | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-tls-'));
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
  const words = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=localhost', '-days', '1'];
  const made = spawnSync('openssl', [...words, '-keyout', key, '-out', cert]).status === 0;
  const pair = made && { key: readFileSync(key), cert: readFileSync(cert) };
  rmSync(folder, { recursive: true });
  if (!pair) return undefined;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (asked) => {
      if (asked.length !== SSL_REQUEST) return void socket.destroy();
      socket.write('S');
      new TLSSocket(socket, { isServer: true, ...pair }).on('error', () => socket.destroy());
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() };
}
