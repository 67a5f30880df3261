import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Seal, SealHeader } from '../../core/approval/seal/seal.ts';
import type { SealSink } from '../../core/approval/seal/sink.ts';
import { SvcError, systemErrorCode } from '../../core/errors.ts';
import { tryParseJson } from '../../core/json.ts';
import { definePlugin } from '../../core/plugin.ts';

/** How much of the end of a file is read at once to find its last line. */
const CHUNK_BYTES = 256 * 1024;
const LINE_FEED = 0x0a;

/** Appends a line of JSON for each seal. Nothing else may write to the file. */
function file(path: string): SealSink {
  return {
    async last() {
      const handle = await openIfThere(path);
      try {
        // A line that a crash cut short is not JSON: the seal is written again, on a line of its own.
        for await (const line of linesFromEnd(handle)) {
          const seal = tryParseJson(line);
          if (seal !== undefined) return seal as unknown as SealHeader;
        }
        return undefined;
      } finally {
        await handle?.close();
      }
    },
    async write(seal) {
      await mkdir(dirname(path), { recursive: true });
      const handle = await open(path, 'a+');
      try {
        const start = (await endsLine(handle)) ? '' : '\n';
        await handle.appendFile(`${start}${JSON.stringify(seal)}\n`);
        await handle.sync();
      } finally {
        await handle.close();
      }
    },
    async *read() {
      const handle = await openIfThere(path);
      if (!handle) return;
      const lines = createInterface({
        input: createReadStream('', { fd: handle }),
        crlfDelay: Number.POSITIVE_INFINITY,
      });
      for await (const line of lines) {
        const seal = tryParseJson(line);
        if (seal !== undefined) yield seal as unknown as Seal;
      }
    },
  };
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function endsLine(handle: FileHandle): Promise<boolean> {
  const { size } = await handle.stat();
  if (size === 0) return true;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] === LINE_FEED;
}

/** The lines of a file, the last one first. */
async function* linesFromEnd(handle: FileHandle | undefined): AsyncGenerator<string> {
  if (!handle) return;
  let rest = Buffer.alloc(0);
  for (let end = (await handle.stat()).size; end > 0; ) {
    const start = Math.max(0, end - CHUNK_BYTES);
    const { buffer } = await handle.read(Buffer.alloc(end - start), 0, end - start, start);
    rest = Buffer.concat([buffer, rest]);
    end = start;
    for (let at = rest.lastIndexOf(LINE_FEED); at >= 0; at = rest.lastIndexOf(LINE_FEED)) {
      yield rest.subarray(at + 1).toString();
      rest = rest.subarray(0, at);
    }
  }
  yield rest.toString();
}

export default definePlugin({
  name: 'file',
  apply(kernel) {
    kernel.sealSinks.register('file', ({ root, path }) => {
      if (typeof path === 'string' && path !== '') return file(resolve(root, path));
      throw new SvcError('config_invalid', 'A sink of the type "file" needs a path.', {
        next: ["Set path: 'seals.jsonl', relative to the folder of the configuration."],
      });
    });
  },
});
