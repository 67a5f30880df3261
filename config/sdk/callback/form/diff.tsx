import type { Child } from 'hono/jsx';
import { displayText } from '../../../../core/display/text.ts';
import { isPlainObject, type Json } from '../../../../core/json.ts';
import { type Path, pathText } from '../../../../core/validate-shape.ts';
import { renderJsonBlock } from '../render-json.tsx';
import { isSame } from './control.ts';

/** A value that was added has no `before`, and one that was removed no `after`. */
export interface JsonChange {
  readonly path: Path;
  readonly before: Json | undefined;
  readonly after: Json | undefined;
}

/** What differs between two values, at the deepest paths where both have the same kind of value. */
export function diffJson(before: Json | undefined, after: Json | undefined, path: Path = []): JsonChange[] {
  if (isSame(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after)) return diffLists(before, after, path);
  if (!isPlainObject(before) || !isPlainObject(after)) return [{ path, before, after }];
  const [one, other] = [before, after];
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  return names.flatMap((name) => diffJson(memberOf(one, name), memberOf(other, name), [...path, name]));
}

const memberOf = (value: Readonly<Record<string, unknown>>, name: string): Json | undefined =>
  Object.hasOwn(value, name) ? (value[name] as Json) : undefined;

/** Without the items that both begin with, and those that both end with. An index is that of the list that has the item. */
function diffLists(before: readonly Json[], after: readonly Json[], path: Path): JsonChange[] {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && isSame(before[start], after[start])) start += 1;
  let end = 0;
  while (end < shorter - start && isSame(before.at(-1 - end), after.at(-1 - end))) end += 1;
  const [removed, added] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  return Array.from({ length: Math.max(removed.length, added.length) }, (_, index) =>
    diffJson(removed[index], added[index], [...path, start + index]),
  ).flat();
}

/** A list of changes, with hidden characters written out. */
export const renderDiff = (changes: readonly JsonChange[]): Child => (
  <dl class="diff">
    {changes.map(({ path, before, after }) => (
      <>
        <dt>{displayText(pathText(path))}</dt>
        <dd>
          <div class="before">
            <span class="muted">Before</span>
            {renderValue(before, path, 'not present')}
          </div>
          <div class="after">
            <span class="muted">After</span>
            {renderValue(after, path, 'removed')}
          </div>
        </dd>
      </>
    ))}
  </dl>
);

function renderValue(value: Json | undefined, path: Path, absent: string): Child {
  if (value === undefined) return <p>{absent}</p>;
  return renderJsonBlock(value, { [pathText(path)]: value });
}
