import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const FENCED = /^( *)```[\s\S]*?^ *```$/gm;
const LINK = /\]\(([^)\s]+)\)/g;
const HEADING = /^#+ (.+)$/gm;

/** Links of Markdown pages that lead to no file under `root`, or to no heading of a page. The pages are paths under `root`. */
export function deadLinks(root: string, pages: readonly string[]): string[] {
  return pages.flatMap((page) =>
    [...textOf(join(root, page)).matchAll(LINK)]
      .map(([, link = '']) => link)
      .filter((link) => !/^[a-z]+:/.test(link) && !leadsSomewhere(root, page, link))
      .map((link) => `${page}: ${link}`),
  );
}

function leadsSomewhere(root: string, page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? join(root, page) : join(root, dirname(page), path);
  if (relative(root, target).startsWith('..') || !existsSync(target)) return false;
  return anchor === undefined || anchorsOf(target).includes(anchor);
}

/** The anchors that GitHub and npm give to headings. */
function anchorsOf(file: string): string[] {
  return [...textOf(file).matchAll(HEADING)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** Without code, where brackets are not links and # is a comment. */
const textOf = (file: string): string => readFileSync(file, 'utf8').replace(FENCED, '');
