import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { type Artifact, javaFor, maven, whyMavenUnavailable } from '../servers/maven.ts';
import { freePort } from '../suites/free-port.ts';
import { waitUntil } from '../suites/wait-until.ts';

/** Temporal's own test server, in memory. */
const ARTIFACT: Artifact = {
  group: 'io.temporal',
  name: 'temporal-test-server',
  version: '1.38.0',
  java: (major) => major >= 11,
};

/** Why it cannot be started, or undefined. */
export function temporalUnavailable(): string | undefined {
  const reason = whyMavenUnavailable(ARTIFACT);
  if (reason !== undefined && process.env.SVC_TEST_REQUIRE === 'all') throw new Error(reason);
  return reason;
}

export async function startTemporal(): Promise<{ readonly address: string; stop(): void }> {
  const lib = await maven(ARTIFACT, () => undefined);
  const port = await freePort();
  const args = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp', `${lib}/*`, 'io.temporal.testserver.TestServer'];
  const child = spawn(javaFor(ARTIFACT) ?? 'java', [...args, String(port)], { stdio: 'ignore' });
  const stop = () => void child.kill('SIGKILL');
  process.on('exit', stop);
  await waitUntil(() => child.exitCode !== null || isOpen(port), 'the server of Temporal does not listen');
  if (child.exitCode !== null) throw new Error(`the server of Temporal exited with ${child.exitCode}`);
  return { address: `127.0.0.1:${port}`, stop };
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const end = (open: boolean) => {
      socket.destroy();
      resolve(open);
    };
    socket.once('connect', () => end(true)).once('error', () => end(false));
  });
}
