import { hash } from 'node:crypto';

/*
 * The Merkle tree of RFC 9162, section 2.1, with SHA-256. Texts are hashed as UTF-8; hashes are base64url.
 */

/** A hash on the way from a leaf to the root, and the side of it that it is on. @experimental */
export type MerkleStep = readonly ['left' | 'right', string];

/** The root over these leaves, in this order. */
export function merkleRoot(leaves: readonly string[]): string {
  let level = leaves.map(leafHash);
  while (level.length > 1) level = levelAbove(level);
  return (level[0] ?? sha256()).toString('base64url');
}

/** What leads from the leaf at `index` to the root. */
export function merklePath(leaves: readonly string[], index: number): MerkleStep[] {
  const path: MerkleStep[] = [];
  let level = leaves.map(leafHash);
  for (let at = index; level.length > 1; at >>= 1) {
    const other = level[at ^ 1];
    if (other) path.push([at % 2 === 0 ? 'right' : 'left', other.toString('base64url')]);
    level = levelAbove(level);
  }
  return path;
}

/** The root of the tree that has this leaf at the end of this path. */
export function rootOfPath(leaf: string, path: readonly MerkleStep[]): string {
  let at = leafHash(leaf);
  for (const [side, text] of path) {
    const other = Buffer.from(text, 'base64url');
    at = side === 'left' ? nodeHash(other, at) : nodeHash(at, other);
  }
  return at.toString('base64url');
}

/** Pairs from the left are the split of the RFC: at the largest power of two that is smaller than the number of leaves. */
function levelAbove(level: readonly Buffer[]): Buffer[] {
  const above: Buffer[] = [];
  for (let index = 0; index < level.length; index += 2) {
    const [left, right] = [level[index], level[index + 1]];
    if (left) above.push(right ? nodeHash(left, right) : left);
  }
  return above;
}

const LEAF = Buffer.of(0);
const NODE = Buffer.of(1);

const leafHash = (leaf: string): Buffer => sha256(LEAF, Buffer.from(leaf));
const nodeHash = (left: Buffer, right: Buffer): Buffer => sha256(NODE, left, right);
const sha256 = (...parts: readonly Buffer[]): Buffer => hash('sha256', Buffer.concat(parts), 'buffer');
