import { existsSync, readFileSync } from 'node:fs';

/** The results that the page shows, by their files in bench/results. */
const RESULTS: Readonly<Record<string, string>> = {
  postgresql: 'Migrations on PostgreSQL and PGlite',
  mysql: 'Migrations on MySQL',
  mariadb: 'Migrations on MariaDB',
  engines: 'Migrations on MongoDB, DynamoDB and Cassandra',
  large: 'A million rows',
  tables: 'A database of 2,000 tables',
  online: 'An application while its table changes',
  gate: 'The cost of an approval',
  pages: 'Pages of waiting requests',
  crowd: 'Many people with the inbox open',
  approvals: 'Approvals, compared with other tools',
};

const INTRODUCTION = `# Speed

What \`npm run bench\` measured last: svc, other tools and the bare driver of each engine, in turns. Compare the figures of one
table; another machine has other figures. \`bench/\` in the repository has the code of each contender; the column “how” says what
each does for a migration.
`;

/** The page of all results. */
export function speedPage(): string {
  const sections = Object.entries(RESULTS).flatMap(([name, title]) => {
    const file = new URL(`../bench/results/${name}.md`, import.meta.url);
    return existsSync(file) ? [section(title, readFileSync(file, 'utf8'))] : [];
  });
  return `${[INTRODUCTION.trimEnd(), ...sections].join('\n\n')}\n`;
}

/** A result as a part of the page: without its chart, what it aims at and the padding of its tables, headings one level down. */
function section(title: string, text: string): string {
  return text
    .replace(/^# .*$/m, `# ${title}`)
    .replace(/^!\[.*\n+/m, '')
    .replace(/^## Aims\n(?:(?!##).*\n)*/m, '')
    .replace(/^#/gm, '##')
    .replace(/^\|.*$/gm, (row) => row.replace(/ {2,}/g, ' ').replace(/-{4,}/g, '---'))
    .trim();
}
