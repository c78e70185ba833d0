/** A metric as Prometheus reads it. */
export interface Family {
  type: string
  samples: { name: string; labels: Record<string, string>; value: number }[]
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/

/** Reads the text exposition format, strictly: a line that is none throws, and so does a sample that comes twice. */
export function readExposition(text: string): Map<string, Family> {
  const families = new Map<string, Family>()
  const seen = new Set<string>()
  let current: Family | undefined
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('# HELP ')) continue
    if (line.startsWith('# TYPE ')) {
      const [, , name = '', type = ''] = line.split(' ')
      if (families.has(name)) throw new Error(`${name} comes twice`)
      families.set(name, (current = { type, samples: [] }))
      continue
    }
    const [, name = '', labels = '', value = ''] = SAMPLE.exec(line) ?? []
    if (name === '' || current === undefined) throw new Error(`not a sample: ${line}`)
    if (seen.has(`${name}{${labels}}`)) throw new Error(`${name}{${labels}} comes twice`)
    seen.add(`${name}{${labels}}`)
    current.samples.push({ name, labels: labelsOf(labels), value: Number(value) })
  }
  return families
}

function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name = '', value = '']) => [name, value]),
  )
}
