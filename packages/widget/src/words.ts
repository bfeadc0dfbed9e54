import type { WidgetLanguage } from '@concierge/contract';
import type { Look } from './gateway.ts';

/** All that the widget itself says, in each language. `{…}` is filled in. */
const en = {
  title: 'Chat',
  greeting: 'Hello! How can we help?',
  placeholder: 'Write a message',
  message: 'Message',
  conversation: 'Conversation',
  visitor: 'You',
  agent: 'Assistant',
  person: 'Team',
  writing: 'is writing',
  send: 'Send',
  stop: 'Stop',
  close: 'Close',
  dismiss: 'Dismiss',
  retry: 'Try again',
  withPerson: 'Someone of our team answers here.',
  away: 'Our team answers again from {time}.',
  oneNew: '1 new message',
  manyNew: '{count} new messages',
  attach: 'Attach a file',
  remove: 'Remove',
  tooLarge: 'It is larger than 10 MB.',
  emptyFile: 'It is empty.',
  tooManyFiles: 'Too many files. Up to 10 can be sent at once.',
  wrongKind: 'This kind of file cannot be sent. Pictures, PDF and text can.',
  failures: {
    rate_limited: 'Too many messages in a short time. Please wait a moment.',
    too_many_waiting: 'Several of your messages are still waiting for an answer.',
    invalid_signature: 'Please sign in again to go on.',
    tenant_suspended: 'The chat is closed at the moment.',
    invalid_request: 'This message cannot be sent. It may be too long.',
    not_found: 'This answer is not there any more.',
    cancelled: 'Stopped.',
    unreachable: 'No connection. Please try again.',
  },
  otherwise: 'Something went wrong. Please try again.',
};

export type Words = Readonly<Record<Exclude<keyof typeof en, 'failures'>, string>> & {
  readonly failures: Readonly<Record<keyof typeof en.failures, string>>;
};

const de: Words = {
  title: 'Chat',
  greeting: 'Hallo! Wie können wir helfen?',
  placeholder: 'Nachricht schreiben',
  message: 'Nachricht',
  conversation: 'Unterhaltung',
  visitor: 'Sie',
  agent: 'Assistent',
  person: 'Team',
  writing: 'schreibt',
  send: 'Senden',
  stop: 'Anhalten',
  close: 'Schließen',
  dismiss: 'Ausblenden',
  retry: 'Noch einmal',
  withPerson: 'Hier antwortet jemand aus unserem Team.',
  away: 'Unser Team antwortet wieder ab {time}.',
  oneNew: '1 neue Nachricht',
  manyNew: '{count} neue Nachrichten',
  attach: 'Datei anhängen',
  remove: 'Entfernen',
  tooLarge: 'Größer als 10 MB.',
  emptyFile: 'Die Datei ist leer.',
  tooManyFiles: 'Zu viele Dateien. Bis zu 10 können auf einmal gesendet werden.',
  wrongKind: 'Dateien dieser Art können nicht gesendet werden. Bilder, PDF und Text schon.',
  failures: {
    rate_limited: 'Zu viele Nachrichten in kurzer Zeit. Bitte warten Sie einen Moment.',
    too_many_waiting: 'Mehrere Ihrer Nachrichten warten noch auf eine Antwort.',
    invalid_signature: 'Bitte melden Sie sich neu an, um fortzufahren.',
    tenant_suspended: 'Der Chat ist gerade geschlossen.',
    invalid_request: 'Diese Nachricht kann nicht gesendet werden. Vielleicht ist sie zu lang.',
    not_found: 'Diese Antwort gibt es nicht mehr.',
    cancelled: 'Angehalten.',
    unreachable: 'Keine Verbindung. Bitte versuchen Sie es noch einmal.',
  },
  otherwise: 'Etwas ist schiefgegangen. Bitte versuchen Sie es noch einmal.',
};

const es: Words = {
  title: 'Chat',
  greeting: '¡Hola! ¿En qué podemos ayudar?',
  placeholder: 'Escriba un mensaje',
  message: 'Mensaje',
  conversation: 'Conversación',
  visitor: 'Usted',
  agent: 'Asistente',
  person: 'Equipo',
  writing: 'está escribiendo',
  send: 'Enviar',
  stop: 'Detener',
  close: 'Cerrar',
  dismiss: 'Descartar',
  retry: 'Reintentar',
  withPerson: 'Aquí responde una persona de nuestro equipo.',
  away: 'Nuestro equipo responde de nuevo a partir de: {time}.',
  oneNew: '1 mensaje nuevo',
  manyNew: '{count} mensajes nuevos',
  attach: 'Adjuntar un archivo',
  remove: 'Quitar',
  tooLarge: 'Ocupa más de 10 MB.',
  emptyFile: 'Está vacío.',
  tooManyFiles: 'Demasiados archivos. Se pueden enviar hasta 10 a la vez.',
  wrongKind: 'Este tipo de archivo no se puede enviar. Imágenes, PDF y texto, sí.',
  failures: {
    rate_limited: 'Demasiados mensajes en poco tiempo. Espere un momento.',
    too_many_waiting: 'Varios de sus mensajes aún esperan respuesta.',
    invalid_signature: 'Inicie sesión de nuevo para continuar.',
    tenant_suspended: 'El chat está cerrado en este momento.',
    invalid_request: 'Este mensaje no se puede enviar. Quizá sea demasiado largo.',
    not_found: 'Esta respuesta ya no está.',
    cancelled: 'Detenido.',
    unreachable: 'Sin conexión. Inténtelo de nuevo.',
  },
  otherwise: 'Algo salió mal. Inténtelo de nuevo.',
};

const fr: Words = {
  title: 'Chat',
  greeting: 'Bonjour ! Comment pouvons-nous vous aider ?',
  placeholder: 'Écrire un message',
  message: 'Message',
  conversation: 'Conversation',
  visitor: 'Vous',
  agent: 'Assistant',
  person: 'Équipe',
  writing: 'écrit',
  send: 'Envoyer',
  stop: 'Arrêter',
  close: 'Fermer',
  dismiss: 'Masquer',
  retry: 'Réessayer',
  withPerson: 'Une personne de notre équipe répond ici.',
  away: 'Notre équipe répond de nouveau à partir de : {time}.',
  oneNew: '1 nouveau message',
  manyNew: '{count} nouveaux messages',
  attach: 'Joindre un fichier',
  remove: 'Retirer',
  tooLarge: 'Il dépasse 10 Mo.',
  emptyFile: 'Il est vide.',
  tooManyFiles: 'Trop de fichiers. Jusqu’à 10 peuvent être envoyés à la fois.',
  wrongKind: 'Ce type de fichier ne peut pas être envoyé. Images, PDF et texte, oui.',
  failures: {
    rate_limited: 'Trop de messages en peu de temps. Veuillez patienter un instant.',
    too_many_waiting: 'Plusieurs de vos messages attendent encore une réponse.',
    invalid_signature: 'Veuillez vous reconnecter pour continuer.',
    tenant_suspended: 'Le chat est fermé pour le moment.',
    invalid_request: 'Ce message ne peut pas être envoyé. Il est peut-être trop long.',
    not_found: 'Cette réponse n’existe plus.',
    cancelled: 'Arrêté.',
    unreachable: 'Pas de connexion. Veuillez réessayer.',
  },
  otherwise: 'Une erreur est survenue. Veuillez réessayer.',
};

const pt: Words = {
  title: 'Chat',
  greeting: 'Olá! Como podemos ajudar?',
  placeholder: 'Escreva uma mensagem',
  message: 'Mensagem',
  conversation: 'Conversa',
  visitor: 'Você',
  agent: 'Assistente',
  person: 'Equipe',
  writing: 'está escrevendo',
  send: 'Enviar',
  stop: 'Parar',
  close: 'Fechar',
  dismiss: 'Dispensar',
  retry: 'Tentar de novo',
  withPerson: 'Alguém da nossa equipe responde aqui.',
  away: 'Nossa equipe responde novamente a partir de: {time}.',
  oneNew: '1 mensagem nova',
  manyNew: '{count} mensagens novas',
  attach: 'Anexar um arquivo',
  remove: 'Remover',
  tooLarge: 'Tem mais de 10 MB.',
  emptyFile: 'Está vazio.',
  tooManyFiles: 'Arquivos demais. É possível enviar até 10 por vez.',
  wrongKind: 'Este tipo de arquivo não pode ser enviado. Imagens, PDF e texto, sim.',
  failures: {
    rate_limited: 'Mensagens demais em pouco tempo. Aguarde um momento.',
    too_many_waiting: 'Várias das suas mensagens ainda aguardam resposta.',
    invalid_signature: 'Entre novamente para continuar.',
    tenant_suspended: 'O chat está fechado no momento.',
    invalid_request: 'Esta mensagem não pode ser enviada. Talvez seja longa demais.',
    not_found: 'Esta resposta não existe mais.',
    cancelled: 'Parado.',
    unreachable: 'Sem conexão. Tente de novo.',
  },
  otherwise: 'Algo deu errado. Tente de novo.',
};

const ar: Words = {
  title: 'الدردشة',
  greeting: 'مرحبًا! كيف يمكننا المساعدة؟',
  placeholder: 'اكتب رسالة',
  message: 'الرسالة',
  conversation: 'المحادثة',
  visitor: 'أنت',
  agent: 'المساعد',
  person: 'الفريق',
  writing: 'يكتب الآن',
  send: 'إرسال',
  stop: 'إيقاف',
  close: 'إغلاق',
  dismiss: 'إخفاء',
  retry: 'إعادة المحاولة',
  withPerson: 'يجيب هنا أحد أفراد فريقنا.',
  away: 'يعود فريقنا للرد ابتداءً من {time}.',
  oneNew: 'رسالة جديدة واحدة',
  manyNew: 'رسائل جديدة: {count}',
  attach: 'إرفاق ملف',
  remove: 'إزالة',
  tooLarge: 'حجمه أكبر من 10 ميغابايت.',
  emptyFile: 'الملف فارغ.',
  tooManyFiles: 'ملفات كثيرة. يمكن إرسال 10 ملفات في المرة الواحدة.',
  wrongKind: 'لا يمكن إرسال هذا النوع من الملفات. يمكن إرسال الصور وPDF والنصوص.',
  failures: {
    rate_limited: 'رسائل كثيرة في وقت قصير. يرجى الانتظار قليلًا.',
    too_many_waiting: 'لا تزال عدة رسائل منك في انتظار الرد.',
    invalid_signature: 'يرجى تسجيل الدخول من جديد للمتابعة.',
    tenant_suspended: 'الدردشة مغلقة حاليًا.',
    invalid_request: 'لا يمكن إرسال هذه الرسالة. قد تكون طويلة جدًا.',
    not_found: 'لم تعد هذه الإجابة موجودة.',
    cancelled: 'تم الإيقاف.',
    unreachable: 'لا يوجد اتصال. يرجى المحاولة مرة أخرى.',
  },
  otherwise: 'حدث خطأ ما. يرجى المحاولة مرة أخرى.',
};

const catalogs: Readonly<Record<WidgetLanguage, Words>> = { en, de, es, fr, pt, ar };

function isSpoken(language: string): language is WidgetLanguage {
  return Object.hasOwn(catalogs, language);
}

/** The first of these languages that the widget speaks, as browsers write them; English when it speaks none. */
export function chooseLanguage(wanted: readonly string[]): WidgetLanguage {
  return wanted.map((tag) => tag.toLowerCase().split('-', 1)[0] ?? '').find((language) => isSpoken(language)) ?? 'en';
}

/** What the widget says in this language; the owner's own texts come before its own. */
export function chooseWords(language: WidgetLanguage, { appearance, display }: Pick<Look, 'appearance' | 'display'>): Words {
  const words = catalogs[language];
  const own = display.texts[language];
  // What the owner has left as it was, is said in the visitor's language.
  const given = (name: 'title' | 'greeting'): string => (appearance[name] === en[name] ? words[name] : appearance[name]);
  return {
    ...words,
    title: own?.title ?? given('title'),
    greeting: own?.greeting ?? given('greeting'),
    placeholder: own?.placeholder ?? words.placeholder,
  };
}

/** An error's code in words for the visitor. */
export function describeFailure(code: string, { failures, otherwise }: Pick<Words, 'failures' | 'otherwise'> = en): string {
  const known: Readonly<Record<string, string>> = failures;
  return known[code] ?? otherwise;
}
