// Completes the page's files and puts them where the server's build takes them from.
//
//   node scripts/site.mjs dev|release STYLE STAGING SITE
//
// STYLE is a style sheet that holds `@import "part.css";` lines; the parts are put in their place, in order, and the
// result becomes pkg/runloom.css. For a release every text and wasm file is compressed too. A file in SITE is written
// only when its content changed, and what STAGING does not have is removed: the server is built anew only for a change.

import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const COMPRESSED = /\.(?:js|css|wasm|svg|json|html|txt)$/;
const IMPORT = /^@import\s+(?:url\()?["']([^"']+)["']\)?\s*(?:layer\(([^)]*)\))?\s*;[ \t]*$/gm;

/** The text of a style sheet with its imports in their place; `seen` holds the files from the outermost to here. */
function inlineImports(file, seen = []) {
  if (seen.includes(file)) {
    throw new Error(`style sheets import each other in a circle: ${[...seen, file].join(' -> ')}`);
  }
  let text;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const importer = seen.at(-1);
    throw new Error(`cannot read the style sheet ${file}${importer ? `, imported by ${importer}` : ''}: ${error.message}`);
  }
  const inlined = text.replace(IMPORT, (_, path, layer) => {
    const part = inlineImports(join(dirname(file), path), [...seen, file]).trimEnd();
    return layer === undefined ? part : `@layer ${layer} {\n${part}\n}`;
  });
  const left = /^\s*@import\b.*$/m.exec(inlined.replace(/\/\*[\s\S]*?\*\//g, ''));
  if (left) {
    throw new Error(`${file}: this form of import is not understood: ${left[0].trim()}; write @import "part.css";`);
  }
  return inlined;
}

/** Every file below `folder`, as paths relative to it. */
function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name)))
    .sort();
}

/** Writes `content` unless the file holds it already; says whether it wrote. */
function writeIfChanged(file, content) {
  try {
    if (readFileSync(file).equals(content)) return false;
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return true;
}

function exists(file) {
  return statSync(file, { throwIfNoEntry: false }) !== undefined;
}

function brotli(content) {
  return brotliCompressSync(content, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
      [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
    },
  });
}

function main([mode, style, staging, site]) {
  writeFileSync(join(staging, 'pkg', 'runloom.css'), inlineImports(style));
  mkdirSync(site, { recursive: true });
  const wanted = new Set();
  for (const path of filesBelow(staging)) {
    const content = readFileSync(join(staging, path));
    const target = join(site, path);
    const changed = writeIfChanged(target, content);
    wanted.add(path);
    if (mode !== 'release' || !COMPRESSED.test(path)) continue;
    for (const [suffix, compress] of [['.br', brotli], ['.gz', (bytes) => gzipSync(bytes, { level: 9 })]]) {
      wanted.add(path + suffix);
      if (changed || !exists(target + suffix)) {
        const compressed = compress(content);
        writeFileSync(target + suffix, compressed);
        console.log(`    ${path}${suffix}: ${content.length} -> ${compressed.length} bytes`);
      }
    }
  }
  for (const path of filesBelow(site)) {
    if (!wanted.has(path)) rmSync(join(site, path));
  }
}

try {
  main(process.argv.slice(2));
} catch (error) {
  console.error(`\nerror: ${error.message}`);
  process.exit(1);
}
