import { fromDocker } from '../docker.ts';
import { localMachine, serversTempFolder } from '../machine.ts';
import { type Artifact, javaFor, maven, whyMavenUnavailable } from '../maven.ts';
import type { Source } from '../source.ts';

const DYNAMODB_LOCAL: Artifact = {
  group: 'com.amazonaws',
  name: 'DynamoDBLocal',
  version: '2.6.1',
  java: (major) => major >= 17,
};

/** Arguments of its Java command; its data is in memory. */
const dynamodbArguments = (lib: string, port: number): readonly string[] => [
  ...['-Xms64m', '-Xmx768m', '-XX:TieredStopAtLevel=1', `-Djava.library.path=${lib}`, '-cp', `${lib}/*`],
  ...['com.amazonaws.services.dynamodbv2.local.main.ServerRunner', '-port', String(port)],
  ...['-sharedDb', '-inMemory', '-disableTelemetry'],
];

const urlAt = (port: number): string => `http://127.0.0.1:${port}`;

const fromMaven: Source = {
  from: `Maven's ${DYNAMODB_LOCAL.name} ${DYNAMODB_LOCAL.version}`,
  whyUnavailable: () => whyMavenUnavailable(DYNAMODB_LOCAL),
  async prepare(report) {
    const lib = await maven(DYNAMODB_LOCAL, report);
    return {
      folder: serversTempFolder(),
      async start(launch) {
        const port = await launch.port(8000);
        launch.report(`starting on port ${port}`);
        // Tables and indexes take time to become active, as on AWS; otherwise waiting for them stays untested.
        const args = [...dynamodbArguments(lib, port), '-delayTransientStatuses'];
        launch.spawn(localMachine, javaFor(DYNAMODB_LOCAL) ?? 'java', args);
        await launch.waitForAnswer('dynamodb', urlAt(port));
        return urlAt(port);
      },
    };
  },
};

export const dynamodb: readonly Source[] = [fromMaven, fromDocker('dynamodb', 8000, urlAt)];
