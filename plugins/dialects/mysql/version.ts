export type Version = readonly [major: number, minor: number, patch: number];

/** `10.11.6-MariaDB-log` as 10, 11 and 6. */
export function versionOf(text: string): Version {
  const [, major, minor, patch] = /(\d+)\.(\d+)\.(\d+)/.exec(text.replace(/^5\.5\.5-/, '')) ?? [];
  return [Number(major ?? 0), Number(minor ?? 0), Number(patch ?? 0)];
}

export function isBefore(version: Version, other: Version): boolean {
  const at = version.findIndex((part, index) => part !== other[index]);
  return at >= 0 && (version[at] ?? 0) < (other[at] ?? 0);
}
