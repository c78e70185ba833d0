import { existsSync, globSync, statSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { read, ROOT } from './document.ts'
import { anchorsOf, linksOf } from './links.ts'

const exclude = ['**/node_modules', 'dist', '.package']
const documents = globSync('{*,config/**/*,src/**/*,test/**/*,.github/*}.md', {
  cwd: ROOT,
  exclude,
}).toSorted()

describe('the links of every document', () => {
  test('are found', () => {
    expect(documents.length).toBeGreaterThan(15)
    expect(documents).toContain('.github/CONTRIBUTING.md')
    expect(linksOf('see [one](a.md#b), ![a picture](c.png)\n```js\nx[0](y)\n```\n')).toEqual([
      'a.md#b',
      'c.png',
    ])
    expect(anchorsOf('# The `a` / b\n## One\n## One\n```sh\n# no heading\n```\n')).toEqual([
      'the-a--b',
      'one',
      'one-1',
    ])
  })

  test.each(documents)('%s: lead to files and headings that exist', (document) => {
    const broken = linksOf(read(document)).filter((link) => !resolves(document, link))
    expect(broken).toEqual([])
  })
})

function resolves(document: string, link: string): boolean {
  if (/^[a-z]+:/.test(link)) return true
  const [file = '', anchor] = link.split('#')
  const target = file === '' ? document : path.join(path.dirname(document), file)
  const absolute = path.join(ROOT, target)
  if (!existsSync(absolute)) return false
  if (anchor === undefined) return true
  return statSync(absolute).isFile() && anchorsOf(read(target)).includes(anchor)
}
