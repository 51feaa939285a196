(function(){
document.querySelectorAll('[id="ID"]:not([data-ready])').forEach(function(box){
box.dataset.ready='1';
var frames=JSON.parse(box.querySelector('script[type="application/json"]').textContent);
var img=box.querySelector('img'),range=box.querySelector('input'),out=box.querySelector('output');
var play=box.querySelector('button'),caption=box.querySelector('figcaption'),timer=null;
function show(i){
var frame=frames[i];img.src=frame.src;img.alt=frame.alt;caption.textContent=frame.caption;
out.textContent=frame.label;range.setAttribute('aria-valuetext',frame.label);}
function stop(){clearInterval(timer);timer=null;play.textContent='Play';caption.setAttribute('aria-live','polite');}
range.addEventListener('input',function(){if(timer)stop();show(+range.value);});
play.addEventListener('click',function(){
if(timer)return stop();
if(+range.value===frames.length-1){range.value=0;show(0);}
play.textContent='Stop';caption.setAttribute('aria-live','off');
timer=setInterval(function(){range.value=+range.value+1;
if(+range.value===frames.length-1)stop();show(+range.value);},900);
});
range.value=0;show(0);box.querySelector('.abe-controls').hidden=false;
});
})();
