import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** A check of the lines of the repository, a part of `npm run lint`. */
interface LineCheck {
  /** Folders and files; default: all. */
  readonly paths?: readonly string[];
  includes(file: string): boolean;
  /** What is wrong with a line. */
  problems(line: string, previous: string): Iterable<string>;
  /** Completes "<number>" in the summary: what was found, and what the files do not contain. */
  readonly found: string;
  readonly none: string;
}

/** Prints each problem with its place, and then a summary. The process ends with 1 if there is a problem. */
export function reportLines({ paths = [], includes, problems, found, none }: LineCheck): void {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...paths], {
    cwd: root,
    encoding: 'utf8',
  });
  const files = listed.split('\n').filter((file) => includes(file) && existsSync(join(root, file)));
  let count = 0;
  for (const file of files) {
    let previous = '';
    for (const [index, line] of readFileSync(join(root, file), 'utf8').split('\n').entries()) {
      for (const problem of problems(line, previous)) {
        count += 1;
        console.error(`${file}:${index + 1} ${problem}\n    ${line.trim()}`);
      }
      previous = line;
    }
  }
  console.log(count === 0 ? `${files.length} files, ${none}.` : `${count} ${found}.`);
  if (count > 0) process.exitCode = 1;
}
