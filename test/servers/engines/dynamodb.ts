import { fromDocker } from '../docker.ts';
import { here } from '../machine.ts';
import { type Artifact, javaFor, maven, mavenMissing } from '../maven.ts';
import type { Source } from '../source.ts';
import { temporary } from '../temporary.ts';

export const DYNAMODB_LOCAL: Artifact = {
  group: 'com.amazonaws',
  name: 'DynamoDBLocal',
  version: '2.6.1',
  java: (major) => major >= 17,
};

/** What Java starts it with; its data is in memory. */
export const dynamodbArguments = (lib: string, port: number): readonly string[] => [
  ...['-Xms64m', '-Xmx768m', '-XX:TieredStopAtLevel=1', `-Djava.library.path=${lib}`, '-cp', `${lib}/*`],
  ...['com.amazonaws.services.dynamodbv2.local.main.ServerRunner', '-port', String(port)],
  ...['-sharedDb', '-inMemory', '-disableTelemetry'],
];

const urlAt = (port: number): string => `http://127.0.0.1:${port}`;

const packaged: Source = {
  from: `Maven's ${DYNAMODB_LOCAL.name} ${DYNAMODB_LOCAL.version}`,
  missing: () => mavenMissing(DYNAMODB_LOCAL),
  async prepare(tell) {
    const lib = await maven(DYNAMODB_LOCAL, tell);
    return {
      folder: temporary(),
      async start(launch) {
        const port = await launch.port(8000);
        launch.tell(`starts on port ${port}`);
        // Tables and indexes take a while to become active, as they do in the cloud: else no waiting is tested.
        const args = [...dynamodbArguments(lib, port), '-delayTransientStatuses'];
        launch.spawn(here, javaFor(DYNAMODB_LOCAL) ?? 'java', args);
        await launch.answers('dynamodb', urlAt(port));
        return urlAt(port);
      },
    };
  },
};

export const dynamodb: readonly Source[] = [packaged, fromDocker('dynamodb', 8000, urlAt)];
