import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildOnce, cacheFolder } from './cache.ts';
import { findProgram } from './machine.ts';
import { runProgram } from './program.ts';
import type { ReportProgress } from './source.ts';

export interface Artifact {
  readonly group: string;
  readonly name: string;
  readonly version: string;
  /** Versions of Java that it runs on. */
  readonly java: (major: number) => boolean;
}

/** Why it cannot be fetched or run on this machine, or undefined. */
export function whyMavenUnavailable(artifact: Artifact): string | undefined {
  if (javaFor(artifact) === undefined) return 'no suitable Java is installed';
  if (existsSync(join(cacheFolder(), folderOf(artifact)))) return undefined;
  if (findProgram('mvn') === undefined) return 'Maven (mvn) is not installed';
  return undefined;
}

/** A folder `lib` with the artifact and its dependencies. */
export async function maven(artifact: Artifact, report: ReportProgress): Promise<string> {
  const { group, name, version } = artifact;
  const folder = await buildOnce(folderOf(artifact), async (unfinished) => {
    report(`fetching ${name} ${version} with Maven`);
    const dependency = `<groupId>${group}</groupId><artifactId>${name}</artifactId><version>${version}</version>`;
    writeFileSync(
      join(unfinished, 'pom.xml'),
      `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>svc</groupId>` +
        `<artifactId>svc</artifactId><version>1</version><dependencies><dependency>${dependency}</dependency></dependencies></project>\n`,
    );
    await runProgram('mvn', ['-B', '-q', 'dependency:copy-dependencies', '-DoutputDirectory=lib'], { cwd: unfinished });
  });
  return join(folder, 'lib');
}

/** The path of a Java that the artifact runs on. */
export function javaFor({ java }: Artifact): string | undefined {
  const { JAVA_HOME } = process.env;
  const installed = existsSync('/usr/lib/jvm') ? readdirSync('/usr/lib/jvm').sort() : [];
  const candidates = [
    ...(JAVA_HOME === undefined ? [] : [join(JAVA_HOME, 'bin/java')]),
    findProgram('java'),
    ...installed.map((name) => join('/usr/lib/jvm', name, 'bin/java')),
  ];
  return candidates.find((path) => path !== undefined && existsSync(path) && java(majorOf(path)));
}

function majorOf(java: string): number {
  const result = spawnSync(java, ['-version'], { encoding: 'utf8' });
  const [, first, second] = /version "(\d+)(?:\.(\d+))?/.exec(`${result.stderr}${result.stdout}`) ?? [];
  return Number(first === '1' ? second : first);
}

const folderOf = ({ name, version }: Artifact): string => `maven-${name}-${version}`;
