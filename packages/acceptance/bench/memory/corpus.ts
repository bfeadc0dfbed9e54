import { readFile, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Session, SessionMessage } from '@concierge/contract';
import { deriveSessionId, type TenantScope } from '@concierge/tenant';
import type { Synonyms } from '@concierge/testing';

interface Section {
  readonly head: string;
  readonly body: string;
}

const notesAt = new Date('2026-09-01T09:00:00.000Z');

/** Puts the shop's notes and conversations into a tenant; the titles of the conversations by their ids. */
export async function fillShop(scope: TenantScope): Promise<ReadonlyMap<string, string>> {
  for (const { head, body } of await readSections('notes.md')) {
    await scope.files.writeText(head, body);
    await utimes(join(scope.root, head), notesAt, notesAt);
  }
  const titles = new Map<string, string>();
  for (const section of await readSections('sessions.md')) {
    const session = toSession(section);
    await scope.sessions.publish(session);
    await scope.index.putSession(session);
    titles.set(session.id, session.title);
  }
  return titles;
}

/** `=== head`, and what follows until the next one. */
async function readSections(file: string): Promise<Section[]> {
  const text = await readFile(new URL(file, import.meta.url), 'utf8');
  return text
    .split(/^=== /mu)
    .slice(1)
    .map((part) => ({ head: part.slice(0, part.indexOf('\n')).trim(), body: `${part.slice(part.indexOf('\n') + 1).trim()}\n` }));
}

/** `agent | sender | day | title`, and lines of `user:` and `assistant:`. */
function toSession({ head, body }: Section): Session {
  const [agent = '', sender = '', day = '', title = ''] = head.split('|').map((part) => part.trim());
  const at = `${day}T10:00:00.000Z`;
  const messages = [...body.matchAll(/^(user|assistant): (.*)$/gmu)].map(([, role, text = ''], index): SessionMessage => {
    const base = { id: `m${String(index)}`, turnId: `t${String(index)}`, at };
    return role === 'user' ? { ...base, role, text, sent: text } : { ...base, role: 'assistant', text };
  });
  return {
    version: 1,
    id: deriveSessionId(agent, 'web', `${sender} ${title}`),
    agent,
    channel: 'web',
    sender: sender === '-' ? null : sender,
    revision: 1,
    createdAt: at,
    updatedAt: at,
    title,
    messageCount: messages.length,
    summary: null,
    messages,
    turns: [],
    contextTokens: null,
  };
}

/** What kind of difficulty a question has. */
export type QuestionKind = 'plain' | 'paraphrase' | 'language' | 'typo';

export interface LabelledQuestion {
  readonly kind: QuestionKind;
  readonly text: string;
  /** Notes by their path, conversations by their title; any of them is right. */
  readonly expects: readonly string[];
}

const ask = (kind: QuestionKind, text: string, ...expects: string[]): LabelledQuestion => ({ kind, text, expects });

/** Asked over `notes.md` and `sessions.md`. */
export const questions: readonly LabelledQuestion[] = [
  ask('plain', 'opening hours on Saturday', 'memory/opening-hours.md'),
  ask('plain', 'how much is a large service', 'memory/workshop-prices.md'),
  ask('plain', 'shipping to Switzerland customs', 'memory/shipping.md'),
  ask('plain', 'where is the key of the cellar', 'memory/cellar-key.md'),
  ask('plain', 'who is our tax adviser', 'memory/bookkeeping.md'),
  ask('plain', 'gift cards valid how long', 'memory/gift-cards.md'),
  ask('plain', 'minimum order at Nordwind', 'memory/supplier-nordwind.md'),
  ask('plain', 'when does the police code bikes', 'memory/frame-number.md'),
  ask('plain', 'which stand do we have at the fair in Offenburg', 'Fair in Offenburg'),
  ask('plain', 'offer for the town hall', 'Offer for the town hall'),
  ask('plain', 'spare keys of ABUS locks', 'memory/locks.md'),
  ask('plain', 'studded tyres for winter', 'memory/tyres.md'),

  ask('paraphrase', 'when will I get my cash back after sending something back', 'memory/refund-timing.md', 'memory/returns.md'),
  ask('paraphrase', 'customer fell and hit his head, can the helmet still be used', 'memory/helmet-crash.md'),
  ask('paraphrase', 'can someone in a wheelchair get into the store', 'memory/accessibility.md'),
  ask('paraphrase', 'my package never showed up', 'memory/lost-parcels.md'),
  ask('paraphrase', 'the thing I ordered came in pieces', 'memory/damaged-in-transit.md'),
  ask('paraphrase', 'buying a bicycle on credit', 'memory/instalments.md'),
  ask('paraphrase', 'leasing through the employer', 'memory/jobrad.md'),
  ask('paraphrase', 'somebody stole the bicycle I hired', 'memory/rental-theft.md'),
  ask('paraphrase', 'cancel a hire because of bad weather', 'memory/rental-cancel.md'),
  ask('paraphrase', 'what to do with a dead accumulator', 'memory/battery-disposal.md'),
  ask('paraphrase', 'can my puppy come inside', 'memory/dogs.md'),
  ask('paraphrase', 'which employee speaks French', 'memory/staff.md', 'memory/french-customers.md'),
  ask('paraphrase', 'a colleague caught the flu, what are the rules', 'memory/sick-leave.md'),
  ask('paraphrase', 'who got the furnace running again', 'Broken heating'),
  ask('paraphrase', 'couple that wants to ride together to their marriage', 'Wedding tandem'),
  ask('paraphrase', 'customer who does not tolerate merino', 'Allergic to wool'),
  ask('paraphrase', 'lowest price we accept for the Fjell', 'Price of the gravel bike'),
  ask('paraphrase', 'my kid needs a bigger bike, what happens with the small one', 'memory/kids-bikes.md'),

  ask('language', 'Wann habt ihr geöffnet?', 'memory/opening-hours.md'),
  ask('language', 'Was kostet der Versand nach Österreich?', 'memory/shipping.md'),
  ask('language', 'Wie lange dauert die Erstattung?', 'memory/refund-timing.md'),
  ask('language', 'Wo hängt der Schlüssel für den Keller?', 'memory/cellar-key.md'),
  ask('language', '¿Cuánto cuesta alquilar una bicicleta eléctrica?', 'memory/rental.md'),
  ask('language', '¿Qué garantía tiene la batería?', 'memory/warranty.md', 'memory/battery-care.md'),
  ask('language', 'Quels moyens de paiement acceptez-vous ?', 'memory/payment.md'),
  ask('language', 'Est-ce que les chiens sont admis dans le magasin ?', 'memory/dogs.md'),
  ask('language', 'winter storage for bicycles', 'memory/winterlager.md'),
  ask('language', 'when does the workshop move to a new address', 'memory/umzug.md'),
  ask('language', 'early payment discount of the helmet supplier', 'memory/proveedores-pago.md'),
  ask('language', 'what may Jonas do for free for regular customers', 'memory/kulanz.md'),

  ask('typo', 'intsallments for expensive bikes, monthly prats', 'memory/instalments.md'),
  ask('typo', 'waranty on nordwnd frames', 'memory/warranty.md'),
  ask('typo', 'opnening huors in winter', 'memory/opening-hours.md'),
  ask('typo', 'kaisrstuhl tuor on saturday', 'memory/tour-kaiserstuhl.md'),
  ask('typo', 'ortleib hooks for panniers', 'memory/bags.md'),
  ask('typo', 'number of the secruitas alarm', 'memory/alarm.md'),
  ask('typo', 'newslettr how often', 'memory/newsletter.md'),
  ask('typo', 'birtday party for childrn', 'memory/kids-parties.md'),
  ask('typo', 'bleding a hydralic brake', 'memory/workshop-prices.md'),
  ask('typo', 'schol orders helmts every septmber', 'memory/schools.md'),
];

/**
 * Words of a shop that mean the same, for the stand-in's vectors: as a model would know them, though far fewer. They
 * were written with the subject in mind, so what hybrid search gains with them shows that meaning reaches the ranking,
 * not how well a model does it.
 */
export const shopSynonyms: Synonyms = [
  ['bike', 'bikes', 'bicycle', 'bicycles', 'cycle', 'rad', 'rader', 'fahrrad', 'velo', 'bicicleta', 'bicicletas'],
  ['shop', 'store', 'laden', 'geschaft', 'magasin', 'tienda'],
  ['open', 'opening', 'hours', 'geoffnet', 'offnungszeiten', 'ouvert', 'abierto', 'horario'],
  ['closed', 'closes', 'geschlossen', 'ferme', 'cerrado'],
  ['refund', 'refunds', 'money', 'reimbursed', 'erstattung', 'ruckzahlung', 'remboursement', 'reembolso'],
  ['ship', 'shipping', 'shipped', 'parcel', 'parcels', 'package', 'versand', 'paket', 'livraison', 'colis', 'envio', 'paquete'],
  ['return', 'returns', 'ruckgabe', 'retour', 'devolucion'],
  ['pay', 'paid', 'payment', 'zahlung', 'zahlen', 'paiement', 'pago', 'pagos', 'pagar'],
  ['credit', 'instalments', 'parts', 'monthly', 'raten', 'finanzierung', 'plazos'],
  ['price', 'prices', 'cost', 'costs', 'kostet', 'preis', 'cuesta', 'prix', 'precio'],
  ['rent', 'rental', 'rented', 'hire', 'hired', 'mieten', 'verleih', 'alquilar', 'alquiler', 'location', 'louer'],
  ['battery', 'batteries', 'accumulator', 'akku', 'bateria', 'batterie'],
  ['electric', 'ebike', 'electrica', 'elektrisch', 'electrique'],
  ['warranty', 'guarantee', 'garantie', 'garantia', 'gewahrleistung'],
  ['repair', 'repairs', 'repaired', 'fix', 'reparatur', 'reparation', 'reparacion'],
  ['workshop', 'werkstatt', 'atelier', 'taller'],
  ['dog', 'dogs', 'puppy', 'hund', 'hunde', 'chien', 'chiens', 'perro'],
  ['child', 'children', 'kid', 'kids', 'kind', 'kinder', 'enfant', 'enfants', 'nino', 'ninos'],
  ['key', 'keys', 'schlussel', 'cle', 'llave'],
  ['cellar', 'basement', 'keller', 'cave', 'sotano'],
  ['stolen', 'theft', 'stole', 'steal', 'gestohlen', 'diebstahl', 'robado', 'vol'],
  ['ill', 'sick', 'flu', 'krank', 'malade', 'enfermo', 'doctor'],
  ['wedding', 'married', 'marriage', 'hochzeit', 'mariage', 'boda'],
  ['heating', 'furnace', 'heizung', 'chauffage', 'calefaccion'],
  ['wool', 'merino', 'wolle', 'laine', 'lana'],
  ['cancel', 'calling', 'cancellation', 'absagen', 'stornieren', 'annuler', 'cancelar'],
  ['weather', 'storm', 'rain', 'wetter', 'sturm', 'regen', 'pluie', 'lluvia'],
  ['employer', 'company', 'employee', 'colleague', 'arbeitgeber', 'firma', 'entreprise', 'empresa'],
  ['storage', 'stored', 'winterlager', 'eingelagert', 'almacen'],
  ['move', 'moves', 'moving', 'umzug', 'zieht', 'demenagement', 'mudanza'],
  ['discount', 'rabatt', 'remise', 'descuento'],
  ['invoice', 'invoices', 'rechnung', 'facture', 'facturas', 'factura'],
  ['free', 'kostenlos', 'gratuit', 'gratis', 'goodwill', 'kulanz'],
  ['regular', 'regulars', 'stammkunden', 'habitues'],
  ['customer', 'customers', 'kunde', 'kunden', 'client', 'clients', 'cliente', 'clientes'],
  ['broken', 'damaged', 'damage', 'pieces', 'kaputt', 'casse', 'roto'],
  ['lost', 'missing', 'arrive', 'arrives', 'showed', 'verloren', 'perdu'],
  ['crash', 'fell', 'blow', 'hit', 'sturz', 'unfall', 'chute', 'caida'],
  ['austria', 'osterreich', 'autriche'],
  ['spring', 'fruhjahr', 'printemps', 'primavera'],
];
